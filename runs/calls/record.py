"""Record tool calls in the audit log: the calls of steps, and direct calls with their end.

A call that works in a workspace, or that a runner or a paired browser performs, has two
audit events: `tool.called` before it starts, and `tool.succeeded` or `tool.failed` after its end,
so that a call whose worker died is recorded too (`runs.lifecycle.in_flight_calls`). A call in the
worker's browser, of which a step may make hundreds, has one, `tool.called`, written with the step's
result. The events of a step's calls are written with the step (`runs.journal.writer`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import Error, transaction

from artifacts.models import Artifact
from artifacts.services import StoredBlob, artifact_rows
from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import ToolCallRequest
from decisions.foundation.database.faults import is_temporary
from decisions.foundation.infra.ids import new_id
from decisions.foundation.infra.threads import in_thread, run_to_completion
from decisions.identity.principals import Principal
from runners.errors import AddressNotAllowed
from runners.invocation.workspace_errors import FailedCall, failed_call
from runners.models import ExecutionTarget
from runners.tools.base import Effect, Tool, ToolResult
from runners.tools.registry import get_tool
from runners.workspace.errors import PolicyViolation
from runs.calls.direct.idempotency import StoredOutcome, store_outcome
from runs.calls.start import start_call
from runs.calls.target import CallTarget
from runs.lifecycle.in_flight_calls import INTERRUPTED, aborted_call_data
from runs.models import OpenCall, Run

RETRY_S = 0.5


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

    def set_result(self, result: ToolResult) -> None:
        """Set what the audit events say of its result."""
        error = result.error or {}
        self.failed_code = "" if result.ok else str(error.get("errorCode"))
        self.refused_host = _refused_host(error)
        self.snapshot_id = _snapshot_of(result)

    def start_event(self, run: Run, step: int) -> AuditEvent:
        """Return the audit event of the call before it starts."""
        return _event_of_run("tool.called", run, self._data(step))

    def end_events(self, run: Run, step: int) -> list[AuditEvent]:
        """Return the audit event of the call after its end, and that of a page that was refused for
        its address, with its host alone.
        """
        action, outcome = self._end()
        events = [_event_of_run(action, run, self._data(step) | outcome)]
        if self.refused_host is not None:
            about = {"step": step, "host": self.refused_host, "trustLevel": run.trust}
            events.append(_event_of_run("address.refused", run, about | {"tool": self.tool}))
        return events

    def _end(self) -> tuple[str, dict[str, Any]]:
        """Return action and outcome of the event of the call's end."""
        ok = {"ok": not self.failed_code}
        if not self.call_id:
            return "tool.called", ok | ({"errorCode": self.failed_code} if self.failed_code else {})
        if self.is_aborted:
            return "tool.failed", aborted_call_data(INTERRUPTED, self.tool, self.details)
        if self.failed_code:
            return "tool.failed", ok | {"code": self.failed_code}
        return "tool.succeeded", ok | _snapshot(self.snapshot_id)

    def _data(self, step: int) -> dict[str, Any]:
        named = {"callId": self.call_id} if self.call_id else {}
        data = {"tool": self.tool, "step": step, "argsDigest": self.args_digest}
        return {**data, **named, **self.details}


def _event_of_run(action: str, run: Run, data: Mapping[str, Any]) -> AuditEvent:
    scope = run.tenant_id, run.workspace_id
    return AuditEvent(action, run.principal_id, "run", run.id, *scope, data)


def _refused_host(error: Mapping[str, Any]) -> str | None:
    host = (error.get("details") or {}).get("host")
    is_address = error.get("errorCode") in (AddressNotAllowed.code, PolicyViolation.code)
    return str(host) if is_address and host is not None else None


def _snapshot_of(result: ToolResult) -> str:
    """Return the id of the snapshot of what a call wrote; empty where there is none."""
    output = result.output
    return str(output.get("snapshotId") or "") if isinstance(output, Mapping) else ""


def _snapshot(snapshot_id: str) -> dict[str, str]:
    return {"snapshotId": snapshot_id} if snapshot_id else {}


@dataclass(slots=True)
class DirectCall:
    """A valid direct call.

    Attributes:
        target: the workspace or runner that performs it, and its row; None for other tools.
        limit_ms: at most this long.
        blobs: the artifacts that the tool stored.
        confirmed_basis: as in `ToolContext`.
    """

    principal: Principal
    tool: Tool
    request: ToolCallRequest
    limit_ms: int
    target: CallTarget | None = None
    target_row: ExecutionTarget | None = None
    call_id: str = field(default_factory=lambda: new_id("call_"))
    blobs: list[StoredBlob] = field(default_factory=list)
    confirmed_basis: str | None = None

    @property
    def is_keyed(self) -> bool:
        """Whether it has an idempotency key and an effect; a call that only reads is repeated."""
        return self.request.key != "" and self.tool.effect != Effect.READ

    @property
    def details(self) -> dict[str, Any]:
        """The details that every audit event of the call has."""
        request = self.request
        details: dict[str, Any] = {
            "tool": request.tool,
            "callId": self.call_id,
            "argsDigest": request.digest,
        }
        if request.target_id is not None:
            details["targetId"] = request.target_id
        if not request.is_builtin:
            details["elsewhere"] = True
        path = request.args.get("path")
        return details | ({"path": path[:300]} if isinstance(path, str) else {})

    def event(self, action: str, **more: Any) -> AuditEvent:
        """Return an audit event about the call."""
        caller, details = self.principal, {**self.details, **more}
        scope = caller.tenant_id, caller.workspace_id
        return AuditEvent(action, caller.id, "tool", self.tool.name, *scope, details)

    def start_with(self, run_id: str) -> None:
        """Record that the call starts as a run, in the caller's transaction."""
        start_call(self.call_id, self.event("tool.called", runId=run_id))

    def failure(self, result: ToolResult) -> FailedCall:
        """Return the error that the caller gets if the call failed."""
        return failed_call(result.error or {}, in_s4=self.tool.kind == "workspace")

    def outcome_of(self, result: ToolResult) -> dict[str, Any]:
        """Return {ok, code?, snapshotId?} for the audit event of the call's end; the code is the
        one that the caller gets.
        """
        if not result.ok:
            return {"ok": False, "code": str(self.failure(result).error["errorCode"])}
        return {"ok": True} | _snapshot(_snapshot_of(result))


async def record_end(
    call: DirectCall,
    started: float,
    audited: Mapping[str, Any] | None,
    outcome: StoredOutcome | None = None,
    **more: Any,
) -> None:
    """Record the end of a direct call: its audit event, its artifacts, and the outcome under its
    key. Commits.

    It is recorded even if the caller has disconnected. While the database takes no writes, the
    caller waits: the call was made, and no other process records its end while this one runs.

    Args:
        started: `time.monotonic()` seconds.
        audited: as `DirectCall.outcome_of` returns it; None if the call was interrupted.
        outcome: None if the call was interrupted, so that its outcome is unknown.
        more: further details of the audit event.
    """
    if audited is None:
        audited = aborted_call_data(INTERRUPTED, call.tool.name, call.details)
    duration_ms = int((time.monotonic() - started) * 1000)
    details = {**audited, **more, "durationMs": duration_ms}
    await run_to_completion(_record_once_possible(call, details, outcome))


async def _record_once_possible(
    call: DirectCall, audited: Mapping[str, Any], outcome: StoredOutcome | None
) -> None:
    while True:
        try:
            return await in_thread(_write_end, call, audited, outcome)
        except Error as error:
            if not is_temporary(error):
                raise
        await asyncio.sleep(RETRY_S)


def _write_end(call: DirectCall, audited: Mapping[str, Any], outcome: StoredOutcome | None) -> None:
    """Write the end of a call; again, if it is unknown whether it was committed."""
    blobs = [(blob, None) for blob in call.blobs]
    with transaction.atomic():
        if blobs:
            owner, now = call.request, datetime.now(UTC)
            rows = artifact_rows(blobs, owner=owner, run_id=call.call_id, ended_at=now)
            Artifact.objects.bulk_create(rows, ignore_conflicts=True)
        action = "tool.succeeded" if audited["ok"] else "tool.failed"
        end_call(call.call_id, call.event(action, **audited))
        if call.is_keyed and outcome is not None:
            store_outcome(outcome)


def end_call(call_id: str, ended_event: AuditEvent) -> bool:
    """Record the end of a call, in the caller's transaction; False: another process recorded it,
    and nothing was written.
    """
    if not OpenCall.objects.filter(id=call_id).delete()[0]:
        return False
    record(ended_event)
    return True
