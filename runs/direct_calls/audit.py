"""A direct call that may be made, and what the audit log tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from artifacts.models import Artifact
from artifacts.services import StoredBlob, artifact_rows
from decisions.audit.record import AuditEvent
from decisions.authorization.authorize import ToolCallRequest
from decisions.identity.principals import Principal
from runners.gateway.request import RunnerTarget
from runners.invocation.workspace_errors import FailedCall, failed_call
from runners.tools.base import Effect, Tool, ToolResult
from runners.workspace.workspace import Workspace
from runs.direct_calls.idempotency import StoredOutcome, store_outcome
from runs.lifecycle.call_records import snapshot_of
from runs.lifecycle.in_flight_calls import finish_direct_call


@dataclass(slots=True)
class AdmittedCall:
    """A call that may be made, or that was before.

    Attributes:
        blobs: what its tool kept.
        earlier: what the call under its key came to.
    """

    tool: Tool
    use: ToolCallRequest
    place: Workspace | RunnerTarget | None
    call_id: str
    blobs: list[StoredBlob] = field(default_factory=list)
    earlier: StoredOutcome | None = None

    @property
    def is_keyed(self) -> bool:
        """Whether its key keeps it from being made twice."""
        return self.use.key != "" and self.tool.effect != Effect.READ


def call_failure(tool: Tool, result: ToolResult) -> FailedCall:
    """Return the refusal that a call's failure is."""
    return failed_call(result.error or {}, in_s4=tool.kind == "workspace")


def audit_outcome(tool: Tool, result: ToolResult) -> dict[str, Any]:
    """Return what the audit log tells of how a call ended: a failure with the code that its caller
    reads.
    """
    if not result.ok:
        return {"ok": False, "code": str(call_failure(tool, result).error["errorCode"])}
    snapshot = snapshot_of(result)
    return {"ok": True} | ({"snapshotId": snapshot} if snapshot else {})


def started_event(principal: Principal, admitted: AdmittedCall) -> AuditEvent:
    """Return the audit row of a call that is about to be made."""
    return audit_event("tool.called", principal, admitted.tool, audit_details(admitted))


def record_end(
    principal: Principal,
    admitted: AdmittedCall,
    outcome: Mapping[str, Any],
    done: StoredOutcome | None = None,
) -> None:
    """Tell that a call is over, with what it kept, and keep what it came to under its key; `done`
    is None where nobody saw that. Commits.
    """
    action = "tool.succeeded" if outcome["ok"] else "tool.failed"
    place = {"tenant_id": principal.tenant_id, "workspace_id": principal.workspace_id}
    blobs = [(blob, None) for blob in admitted.blobs]
    with transaction.atomic():
        if blobs:
            Artifact.objects.bulk_create(
                artifact_rows(blobs, **place, run_id=admitted.call_id, ended_at=datetime.now(UTC))
            )
        closing = audit_event(
            action, principal, admitted.tool, {**audit_details(admitted), **outcome}
        )
        finish_direct_call(admitted.call_id, closing)
        if admitted.is_keyed and done is not None:
            store_outcome(done)


def audit_details(admitted: AdmittedCall) -> dict[str, Any]:
    """Return what every audit row of a call tells of it."""
    use = admitted.use
    told: dict[str, Any] = {
        "tool": use.tool,
        "callId": admitted.call_id,
        "argsDigest": use.digest,
    }
    if use.target_id is not None:
        told["targetId"] = use.target_id
    if not use.is_builtin:
        told["elsewhere"] = True
    path = use.args.get("path")
    return told | ({"path": path[:300]} if isinstance(path, str) else {})


def audit_event(
    action: str, principal: Principal, tool: Tool, told: Mapping[str, Any]
) -> AuditEvent:
    """Return an audit row about a direct call of a tool."""
    place = principal.tenant_id, principal.workspace_id
    return AuditEvent(action, principal.id, "tool", tool.name, *place, told)
