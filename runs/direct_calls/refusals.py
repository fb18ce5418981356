"""What the audit log tells of direct calls that are refused before anything begins: one row each,
whatever was sent.

Of the arguments nothing is told. What policy or a person denies has a row of its own
(`decisions.authorization.authorize`), and what no caller could be named for (no token, too many
calls) has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from decisions.audit.record import AuditEvent, record
from decisions.errors import ConfirmationRequired, Refused
from decisions.identity.principals import Principal
from decisions.security.logs import redact
from decisions.validation.storable import storable_text
from runners.invocation.workspace_errors import FailedCall, as_workspace_error
from runners.tools.registry import is_workspace_tool

NAME_CHARACTERS = 64  # of a tool that may not exist: its name is whatever the caller sent


@contextmanager
def recording_refusals(*, principal: Principal, name: str) -> Iterator[None]:
    """Write the row of a call that is refused within, outside of whatever was rolled back there."""
    try:
        yield
    except ConfirmationRequired:
        raise  # who waits for a person is not refused
    except Refused as refusal:
        if not refusal.is_recorded:
            record_refusal(principal=principal, name=name, refusal=refusal)
        raise


def record_refusal(*, principal: Principal, name: str, refusal: Refused) -> None:
    """Write who was refused a call of which tool, and with which code; commits."""
    shown = storable_text(redact(name[:NAME_CHARACTERS]))
    told = {"tool": shown, "code": _code_told(name, refusal)}
    if "scope" in refusal.details:
        told["scope"] = refusal.details["scope"]
    place = principal.tenant_id, principal.workspace_id
    record(AuditEvent("tool.refused", principal.id, "tool", shown, *place, told))


def _code_told(name: str, refusal: Refused) -> str:
    """Return the code that the caller reads."""
    if isinstance(refusal, FailedCall):
        return str(refusal.error["errorCode"])
    return str(as_workspace_error(refusal)["error"]["code"]) if is_workspace_tool(name) else refusal.code
