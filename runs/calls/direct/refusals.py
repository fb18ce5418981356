"""Audit events of direct calls that are refused before they start: one per call, without arguments.

Denials by policy or a person are recorded by `decisions.authorization.authorize`. Requests without
a known caller (no valid token, rate limit) are not recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from decisions.audit.record import AuditEvent, record
from decisions.foundation.errors import ConfirmationRequired, Refused
from decisions.foundation.security.logs import redact
from decisions.foundation.validation.storable import storable_text
from decisions.identity.principals import Principal
from runners.invocation.workspace_errors import FailedCall, as_workspace_error
from runners.tools.registry import is_workspace_tool

NAME_CHARACTERS = 64  # of the tool name that the caller sent; such a tool may not exist


@contextmanager
def recording_refusals(*, principal: Principal, name: str) -> Iterator[None]:
    """Record a refusal that the block raises; its own transaction has been rolled back by then."""
    try:
        yield
    except ConfirmationRequired:
        raise  # the call waits for a person: that is not a refusal
    except Refused as refusal:
        if not refusal.is_recorded:
            record_refusal(principal=principal, name=name, refusal=refusal)
        raise


def record_refusal(*, principal: Principal, name: str, refusal: Refused) -> None:
    """Record the refusal of a direct call: caller, tool name and error code. Commits."""
    tool = storable_text(redact(name[:NAME_CHARACTERS]))
    details = {"tool": tool, "code": _error_code(name, refusal)}
    if "scope" in refusal.details:
        details["scope"] = refusal.details["scope"]
    scope = principal.tenant_id, principal.workspace_id
    record(AuditEvent("tool.refused", principal.id, "tool", tool, *scope, details))


def _error_code(name: str, refusal: Refused) -> str:
    """Return the error code that the caller gets."""
    if isinstance(refusal, FailedCall):
        return str(refusal.error["errorCode"])
    return (
        str(as_workspace_error(refusal)["error"]["code"])
        if is_workspace_tool(name)
        else refusal.code
    )
