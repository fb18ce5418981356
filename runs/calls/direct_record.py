"""An admitted direct call, and its audit events."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import Error, transaction

from artifacts.models import Artifact
from artifacts.services import StoredBlob, artifact_rows
from decisions.audit.record import AuditEvent
from decisions.authorization.authorize import ToolCallRequest
from decisions.foundation.database.faults import is_temporary
from decisions.foundation.infra.threads import in_thread, run_to_completion
from decisions.identity.principals import Principal
from runners.gateway.request import RunnerTarget
from runners.invocation.workspace_errors import FailedCall, failed_call
from runners.models import ExecutionTarget
from runners.tools.base import Effect, Tool, ToolResult
from runners.workspace.workspace import ProjectWorkspace
from runs.calls.idempotency import StoredOutcome, store_outcome
from runs.lifecycle.call_records import snapshot_of
from runs.lifecycle.in_flight_calls import finish_direct_call

RETRY_S = 0.5


@dataclass(slots=True)
class AdmittedCall:
    """A valid and authorized call.

    Attributes:
        target: the workspace or runner that performs it, and its row; None for other tools.
        blobs: the artifacts that the tool stored.
        earlier_outcome: the outcome of an earlier call with the same key; this one is not made.
        confirmed_basis: as in `ToolContext`.
    """

    tool: Tool
    request: ToolCallRequest
    target: ProjectWorkspace | RunnerTarget | None
    call_id: str
    blobs: list[StoredBlob] = field(default_factory=list)
    earlier_outcome: StoredOutcome | None = None
    target_row: ExecutionTarget | None = None
    confirmed_basis: str | None = None

    @property
    def is_keyed(self) -> bool:
        """Whether it has an idempotency key and an effect; a call that only reads is repeated."""
        return self.request.key != "" and self.tool.effect != Effect.READ


def call_failure(tool: Tool, result: ToolResult) -> FailedCall:
    """Return the error that the caller of a failed call gets."""
    return failed_call(result.error or {}, in_s4=tool.kind == "workspace")


def audit_outcome(tool: Tool, result: ToolResult) -> dict[str, Any]:
    """Return {ok, code?, snapshotId?} for the audit event of a call's end; the code is the one that
    the caller gets.
    """
    if not result.ok:
        return {"ok": False, "code": str(call_failure(tool, result).error["errorCode"])}
    snapshot = snapshot_of(result)
    return {"ok": True} | ({"snapshotId": snapshot} if snapshot else {})


def started_event(principal: Principal, admitted: AdmittedCall) -> AuditEvent:
    """Return the audit event of a call that starts."""
    return audit_event("tool.called", principal, admitted.tool, audit_details(admitted))


async def record_end(
    principal: Principal,
    admitted: AdmittedCall,
    audited: Mapping[str, Any],
    outcome: StoredOutcome | None = None,
) -> None:
    """Record the end of a call: its audit event, its artifacts, and the outcome under its key.
    Commits.

    It is recorded even if the caller has disconnected. While the database takes no writes, the
    caller waits: the call was made, and no other process records its end while this one runs.

    Args:
        audited: as `audit_outcome` returns it.
        outcome: None if the call was interrupted, so that its outcome is unknown.
    """
    await run_to_completion(_record_once_possible(principal, admitted, audited, outcome))


async def _record_once_possible(
    principal: Principal,
    admitted: AdmittedCall,
    audited: Mapping[str, Any],
    outcome: StoredOutcome | None,
) -> None:
    while True:
        try:
            return await in_thread(_write_end, principal, admitted, audited, outcome)
        except Error as error:
            if not is_temporary(error):
                raise
        await asyncio.sleep(RETRY_S)


def _write_end(
    principal: Principal,
    admitted: AdmittedCall,
    audited: Mapping[str, Any],
    outcome: StoredOutcome | None,
) -> None:
    """Write the end of a call; again, if it is unknown whether it was committed."""
    action = "tool.succeeded" if audited["ok"] else "tool.failed"
    blobs = [(blob, None) for blob in admitted.blobs]
    with transaction.atomic():
        if blobs:
            Artifact.objects.bulk_create(
                artifact_rows(
                    blobs,
                    owner=admitted.request,
                    run_id=admitted.call_id,
                    ended_at=datetime.now(UTC),
                ),
                ignore_conflicts=True,
            )
        details = {**audit_details(admitted), **audited}
        finish_direct_call(admitted.call_id, audit_event(action, principal, admitted.tool, details))
        if admitted.is_keyed and outcome is not None:
            store_outcome(outcome)


def audit_details(admitted: AdmittedCall) -> dict[str, Any]:
    """Return the details that every audit event of a call has."""
    request = admitted.request
    details: dict[str, Any] = {
        "tool": request.tool,
        "callId": admitted.call_id,
        "argsDigest": request.digest,
    }
    if request.target_id is not None:
        details["targetId"] = request.target_id
    if not request.is_builtin:
        details["elsewhere"] = True
    path = request.args.get("path")
    return details | ({"path": path[:300]} if isinstance(path, str) else {})


def audit_event(
    action: str, principal: Principal, tool: Tool, details: Mapping[str, Any]
) -> AuditEvent:
    """Return an audit event about a direct call of a tool."""
    scope = principal.tenant_id, principal.workspace_id
    return AuditEvent(action, principal.id, "tool", tool.name, *scope, details)
