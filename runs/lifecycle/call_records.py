"""Tool calls that steps made, and what the audit log tells of each.

A call that works in a workspace, or that a runner performs, is told before it is made
(`tool.called`) and when it is over (`tool.succeeded`, `tool.failed`), so that one whose worker was
lost is there too (`runs.lifecycle.in_flight_calls`). Of a call of a browser's tool, which a step
may make by the
hundred, there is one row, `tool.called`, written with its step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from decisions.audit.record import AuditEvent
from decisions.authorization.authorize import ToolUse
from decisions.infra.ids import new_id
from runners.errors import AddressNotAllowed
from runners.tools.base import ToolResult
from runners.tools.registry import get_tool
from runners.workspace.errors import PolicyViolation
from runs.lifecycle.in_flight_calls import INTERRUPTED, aborted_call_data
from runs.models import Run


@dataclass(slots=True)
class CallRecord:
    """One call that a step made.

    Attributes:
        about: what the audit log tells of a call that is told before it is made: targetId, path,
            and that a runner performs it.
        call_id: names a call that was told before it was made; empty for any other.
        failed_code: why it failed, or that it never came to its end; empty where it succeeded.
        refused_host: of a document that was refused for its address, whatever the step makes of it.
    """

    tool: str
    args_digest: str
    about: Mapping[str, Any]
    call_id: str = ""
    failed_code: str = INTERRUPTED
    snapshot_id: str = ""
    refused_host: str | None = None

    @classmethod
    def of(cls, use: ToolUse) -> CallRecord:
        """Return a call that is about to be made."""
        args = use.args if use.shown is None else use.shown
        tool = get_tool(use.tool) if use.is_own else None
        if tool is None:
            elsewhere = {"targetId": use.target_id or "", "elsewhere": True}
            return cls(use.tool, use.digest, elsewhere, call_id=new_id("call_"))
        if tool.kind != "workspace":
            return cls(use.tool, use.digest, {})
        about: dict[str, Any] = {}
        if use.target_id is not None:
            about["targetId"] = use.target_id
        if isinstance(path := args.get("path"), str):
            about["path"] = path[:300]
        return cls(use.tool, use.digest, about, call_id=new_id("call_"))

    @property
    def is_aborted(self) -> bool:
        """Whether it never came to its end."""
        return self.failed_code == INTERRUPTED

    def ended(self, result: ToolResult) -> None:
        """Note what came of it."""
        error = result.error or {}
        self.failed_code = "" if result.ok else str(error.get("errorCode"))
        self.refused_host = _refused_host(error)
        self.snapshot_id = snapshot_of(result)


def snapshot_of(result: ToolResult) -> str:
    """Return the snapshot that a call left of what it wrote; empty where it left none."""
    output = result.output
    return str(output.get("snapshotId") or "") if isinstance(output, Mapping) else ""


def _refused_host(error: Mapping[str, Any]) -> str | None:
    host = (error.get("details") or {}).get("host")
    is_address = error.get("errorCode") in (AddressNotAllowed.code, PolicyViolation.code)
    return str(host) if is_address and host is not None else None


def begun(run: Run, step: int, call: CallRecord) -> AuditEvent:
    """Return the audit row of a call that is about to be made."""
    return _deed("tool.called", run, _about(step, call))


def over(run: Run, step: int, call: CallRecord) -> AuditEvent:
    """Return the audit row of a call that is over."""
    told = _about(step, call) | {"ok": not call.failed_code}
    if not call.call_id:
        failed = {"errorCode": call.failed_code} if call.failed_code else {}
        return _deed("tool.called", run, told | failed)
    if call.is_aborted:
        return _deed("tool.failed", run, told | aborted_call_data(INTERRUPTED, call.tool, told))
    if call.failed_code:
        return _deed("tool.failed", run, told | {"code": call.failed_code})
    kept = {"snapshotId": call.snapshot_id} if call.snapshot_id else {}
    return _deed("tool.succeeded", run, told | kept)


def refused_address(run: Run, step: int, call: CallRecord) -> list[AuditEvent]:
    """Return the audit row of a document that was refused for its address: the host, no more."""
    if call.refused_host is None:
        return []
    told = {"step": step, "host": call.refused_host, "trustLevel": run.trust, "tool": call.tool}
    return [_deed("address.refused", run, told)]


def _about(step: int, call: CallRecord) -> dict[str, Any]:
    named = {"callId": call.call_id} if call.call_id else {}
    return {"tool": call.tool, "step": step, "argsDigest": call.args_digest, **named, **call.about}


def _deed(action: str, run: Run, told: Mapping[str, Any]) -> AuditEvent:
    return AuditEvent(
        action, run.principal_id, "run", run.id, run.tenant_id, run.workspace_id, told
    )
