"""Tool calls of steps, and their audit events.

A call that works in a workspace, or that a runner or a paired browser performs, has two
audit events: `tool.called` before it starts, and `tool.succeeded` or `tool.failed` after its end,
so that a call whose worker died is recorded too (`runs.lifecycle.in_flight_calls`). A call in the
worker's browser, of which a step may make hundreds, has one, `tool.called`, written with the step's
result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from decisions.audit.record import AuditEvent
from decisions.authorization.authorize import ToolCallRequest
from decisions.foundation.infra.ids import new_id
from runners.errors import AddressNotAllowed
from runners.tools.base import ToolResult
from runners.tools.registry import get_tool
from runners.workspace.errors import PolicyViolation
from runs.lifecycle.in_flight_calls import INTERRUPTED, aborted_call_data
from runs.models import Run


@dataclass(slots=True)
class CallRecord:
    """One tool call of a step.

    Attributes:
        details: further data of its audit events: targetId, path, and that a runner performs it.
        call_id: the id of a call that is recorded before it starts; empty for any other.
        failed_code: the error code; INTERRUPTED until it ends; empty where it succeeded.
        snapshot_id: the snapshot of the files that it wrote.
        refused_host: the host of a page that was refused for its address, whether or not the step
            fails for it.
    """

    tool: str
    args_digest: str
    details: Mapping[str, Any]
    call_id: str = ""
    failed_code: str = INTERRUPTED
    snapshot_id: str = ""
    refused_host: str | None = None

    @classmethod
    def of(cls, request: ToolCallRequest) -> CallRecord:
        """Return the record of a call that is about to start."""
        args = request.args if request.display_args is None else request.display_args
        tool = get_tool(request.tool) if request.is_builtin else None
        if tool is None:
            remote = {"targetId": request.target_id or "", "elsewhere": True}
            return cls(request.tool, request.digest, remote, call_id=new_id("call_"))
        if tool.kind != "workspace" and request.target_id is None:
            return cls(request.tool, request.digest, {})
        details: dict[str, Any] = {}
        if request.target_id is not None:
            details["targetId"] = request.target_id
        if isinstance(path := args.get("path"), str):
            details["path"] = path[:300]
        return cls(request.tool, request.digest, details, call_id=new_id("call_"))

    @property
    def is_aborted(self) -> bool:
        """Whether the call has not ended by itself."""
        return self.failed_code == INTERRUPTED

    def record_result(self, result: ToolResult) -> None:
        """Set what the audit events say of its result."""
        error = result.error or {}
        self.failed_code = "" if result.ok else str(error.get("errorCode"))
        self.refused_host = _refused_host(error)
        self.snapshot_id = snapshot_of(result)


def snapshot_of(result: ToolResult) -> str:
    """Return the id of the snapshot of what a call wrote; empty where there is none."""
    output = result.output
    return str(output.get("snapshotId") or "") if isinstance(output, Mapping) else ""


def _refused_host(error: Mapping[str, Any]) -> str | None:
    host = (error.get("details") or {}).get("host")
    is_address = error.get("errorCode") in (AddressNotAllowed.code, PolicyViolation.code)
    return str(host) if is_address and host is not None else None


def call_started_event(run: Run, step: int, call: CallRecord) -> AuditEvent:
    """Return the audit event of a call that is about to start."""
    return _event("tool.called", run, _data(step, call))


def call_ended_event(run: Run, step: int, call: CallRecord) -> AuditEvent:
    """Return the audit event of a call that has ended."""
    data = _data(step, call) | {"ok": not call.failed_code}
    if not call.call_id:
        failed = {"errorCode": call.failed_code} if call.failed_code else {}
        return _event("tool.called", run, data | failed)
    if call.is_aborted:
        return _event("tool.failed", run, data | aborted_call_data(INTERRUPTED, call.tool, data))
    if call.failed_code:
        return _event("tool.failed", run, data | {"code": call.failed_code})
    snapshot = {"snapshotId": call.snapshot_id} if call.snapshot_id else {}
    return _event("tool.succeeded", run, data | snapshot)


def refused_address_events(run: Run, step: int, call: CallRecord) -> list[AuditEvent]:
    """Return the audit event of a page that was refused for its address, with its host alone; none
    where no page was.
    """
    if call.refused_host is None:
        return []
    data = {"step": step, "host": call.refused_host, "trustLevel": run.trust, "tool": call.tool}
    return [_event("address.refused", run, data)]


def _data(step: int, call: CallRecord) -> dict[str, Any]:
    named = {"callId": call.call_id} if call.call_id else {}
    data = {"tool": call.tool, "step": step, "argsDigest": call.args_digest}
    return {**data, **named, **call.details}


def _event(action: str, run: Run, data: Mapping[str, Any]) -> AuditEvent:
    return AuditEvent(
        action, run.principal_id, "run", run.id, run.tenant_id, run.workspace_id, data
    )
