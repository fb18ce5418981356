"""What an operator may say of a runner: where it listens, with which token, and how long a call
may take.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from decisions.errors import InvalidInput
from decisions.validation.storable import storable
from runners.errors import ToolFailed
from runners.gateway.endpoint import checked_endpoint
from runners.models import ExecutionTarget
from runners.targets.published_tools import check_named_offers

ON_UNREACHABLE = ("deny", "fallback_local")
_CONFIG_MAX_BYTES = 16 * 1024
_ENDPOINT_MAX = 500
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")  # what a header may carry (RFC 6750)
_AGENT = re.compile(r"local|token:[A-Za-z0-9_]{1,64}")
_SECRET = re.compile(r"token|secret|password|passwd|api.?key|credential|authorization", re.I)


def checked_place(endpoint: str | None, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the endpoint and the config of a runner as columns of its target.

    A target may have no endpoint yet: a call then fails and says so (S3 §6).

    Raises:
        InvalidInput: An address that is not open to servers' requests (product.md, "Access"), a
            value out of range, or a secret where everybody would read it.
    """
    kept = storable(config)
    if len(orjson.dumps(kept)) > _CONFIG_MAX_BYTES:
        raise InvalidInput(f"config: at most {_CONFIG_MAX_BYTES} bytes of JSON.")
    secret = next((name for name in kept if _SECRET.search(name)), None)
    if secret is not None:
        raise InvalidInput(f"config.{secret[:64]}: secrets do not belong there; use authToken.")
    _check_times(kept)
    if "tools" in kept:
        check_named_offers(kept["tools"])
    if "endpoint" in kept:
        kept["endpoint"] = _checked(kept["endpoint"], "config.endpoint")
    return {"endpoint": _checked(endpoint, "endpoint"), "config": kept}


def check_agents(config: Mapping[str, Any]) -> None:
    """Refuse a `config.agents` that names something else than principals.

    Raises:
        InvalidInput: It is no list of them.
    """
    named = config.get("agents", [])
    if not isinstance(named, list) or not all(
        isinstance(one, str) and _AGENT.fullmatch(one) for one in named
    ):
        raise InvalidInput("config.agents: a list of principals, each local or token:ID.")


def agents_of(target: ExecutionTarget) -> list[str]:
    """Return the principals whose calls go to a target if they name none."""
    named = target.config.get("agents")
    return named if isinstance(named, list) else []


def checked_auth_token(text: str | None) -> str | None:
    """Return a token as it is sent; "" and None as they are.

    Raises:
        InvalidInput: No header can carry it.
    """
    if text and not _TOKEN.fullmatch(text):
        raise InvalidInput("authToken: 1 to 4096 visible ASCII characters, without blanks.")
    return text


def _check_times(config: Mapping[str, Any]) -> None:
    timeout_ms = config.get("timeoutMs", 1)
    if not isinstance(timeout_ms, int) or isinstance(timeout_ms, bool) or timeout_ms < 1:
        raise InvalidInput("config.timeoutMs: a whole number of milliseconds, at least 1.")
    if config.get("onUnreachable", "deny") not in ON_UNREACHABLE:
        raise InvalidInput(f"config.onUnreachable: one of {', '.join(ON_UNREACHABLE)}.")


def _checked(endpoint: Any, name: str) -> str | None:
    if endpoint is None or endpoint == "":
        return None
    try:
        if not isinstance(endpoint, str) or len(endpoint) > _ENDPOINT_MAX:
            raise InvalidInput(f"{name}: an address of at most {_ENDPOINT_MAX} characters.")
        return checked_endpoint(endpoint)
    except ToolFailed as refused:
        opened = " Its operator opens it with CONTINUITY_EGRESS_ALLOW."
        more = opened if refused.code == "TRUST_LEVEL_NOT_ALLOWED" else ""
        raise InvalidInput(f"{name}: {refused.message}{more}", details=refused.details) from None
