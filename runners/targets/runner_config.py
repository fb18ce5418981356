"""Validation of a runner's configuration: endpoint, token, time limit, agents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from decisions.foundation.errors import InvalidInput
from decisions.foundation.validation.storable import storable
from runners.errors import ToolFailed
from runners.gateway.endpoint import checked_endpoint, loopback_address
from runners.models import ExecutionTarget
from runners.targets.published_tools import check_configured_tools

ON_UNREACHABLE = ("deny", "fallback_local")
_CONFIG_MAX_BYTES = 16 * 1024
_ENDPOINT_MAX = 500
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")  # what a header may carry (RFC 6750)
_AGENT = re.compile(r"local|token:[A-Za-z0-9_]{1,64}")
_SECRET = re.compile(r"token|secret|password|passwd|api.?key|credential|authorization", re.I)


def checked_runner_columns(
    endpoint: str | None, config: Mapping[str, Any], opened: str = ""
) -> dict[str, Any]:
    """Check the endpoint and config of a runner; return them as columns of its target.

    A target may have no endpoint yet; its calls then fail with that reason (S3 §6).

    Args:
        opened: the address that is open for this runner alone.

    Raises:
        InvalidInput: The address is not allowed, a value is out of range, or the config contains a
            secret.
    """
    checked = storable(config)
    if len(orjson.dumps(checked)) > _CONFIG_MAX_BYTES:
        raise InvalidInput(f"config: at most {_CONFIG_MAX_BYTES} bytes of JSON.")
    secret = next((name for name in checked if _SECRET.search(name)), None)
    if secret is not None:
        raise InvalidInput(f"config.{secret[:64]}: secrets are not allowed here; use authToken.")
    _check_times(checked)
    if "tools" in checked:
        check_configured_tools(checked["tools"])
    if "endpoint" in checked:
        checked["endpoint"] = _checked(checked["endpoint"], "config.endpoint", opened)
    return {"endpoint": _checked(endpoint, "endpoint", opened), "config": checked}


def opening_of(endpoint: str | None) -> str:
    """Return the address that is opened for a runner with this endpoint: its own, on loopback."""
    try:
        return loopback_address(endpoint) if endpoint else ""
    except ToolFailed:  # it is no address: `checked_runner_columns` refuses it
        return ""


def check_agents(config: Mapping[str, Any]) -> None:
    """Refuse a `config.agents` that is not a list of principals.

    Raises:
        InvalidInput: It is not.
    """
    named = config.get("agents", [])
    if not isinstance(named, list) or not all(
        isinstance(one, str) and _AGENT.fullmatch(one) for one in named
    ):
        raise InvalidInput("config.agents: must be a list of principals, each local or token:ID.")


def agents_of(target: ExecutionTarget) -> list[str]:
    """Return the principals whose calls without a targetId go to this target."""
    named = target.config.get("agents")
    return named if isinstance(named, list) else []


def checked_auth_token(text: str | None) -> str | None:
    """Check a token and return it; "" and None are allowed.

    Raises:
        InvalidInput: It cannot be sent in a header.
    """
    if text and not _TOKEN.fullmatch(text):
        raise InvalidInput("authToken: must be 1 to 4096 visible ASCII characters without spaces.")
    return text


def _check_times(config: Mapping[str, Any]) -> None:
    timeout_ms = config.get("timeoutMs", 1)
    if not isinstance(timeout_ms, int) or isinstance(timeout_ms, bool) or timeout_ms < 1:
        raise InvalidInput("config.timeoutMs: must be a whole number of milliseconds, at least 1.")
    if config.get("onUnreachable", "deny") not in ON_UNREACHABLE:
        raise InvalidInput(f"config.onUnreachable: must be one of {', '.join(ON_UNREACHABLE)}.")


def _checked(endpoint: Any, name: str, opened: str) -> str | None:
    if endpoint is None or endpoint == "":
        return None
    try:
        if not isinstance(endpoint, str) or len(endpoint) > _ENDPOINT_MAX:
            raise InvalidInput(f"{name}: must be a URL of at most {_ENDPOINT_MAX} characters.")
        return checked_endpoint(endpoint, opened)
    except ToolFailed as refused:
        hint = (
            " The operator can allow it in CONTINUITY_EGRESS_ALLOW, or, if it is on loopback, add"
            " the target with `manage.py add_target`."
        )
        more = hint if refused.code == "TRUST_LEVEL_NOT_ALLOWED" else ""
        raise InvalidInput(f"{name}: {refused.message}{more}", details=refused.details) from None
