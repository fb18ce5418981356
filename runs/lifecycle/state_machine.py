"""Change a run's status: the only code that does.

The guard is the UPDATE's WHERE; status, events and audit events commit together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from decisions.audit.record import AuditEvent
from runs.lifecycle.changes import NewEvent, Plus, StepChange, Transition
from runs.lifecycle.transition import apply
from runs.models import TERMINAL, Run, RunStatus

ALLOWED: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.QUEUED: frozenset({RunStatus.RUNNING, RunStatus.FAILED, RunStatus.CANCELED}),
    RunStatus.RUNNING: TERMINAL,
    RunStatus.SUCCEEDED: frozenset(),
    RunStatus.FAILED: frozenset(),
    RunStatus.PARTIAL_SUCCESS: frozenset(),
    RunStatus.CANCELED: frozenset(),
}


class InvalidTransition(Exception):
    """The run has another status than expected, or is no longer under the caller's lease; nothing
    was written.
    """


def move(
    change: Transition, to: RunStatus, *, actor: str, data: Mapping[str, Any] | None = None
) -> None:
    """Move a run to another status; commits with the caller's transaction, or by itself.

    Args:
        change: the guard, which contains the expected status, and what is written with the move.
        to: the new status.
        actor: the actor of the audit event.
        data: the data of the move's event and audit event.

    Raises:
        InvalidTransition: ALLOWED has no such pair, or the guard held no row.
    """
    run, only_from = change.run, RunStatus(change.guard["status"])
    if to not in ALLOWED[only_from]:
        raise InvalidTransition(f"a run cannot move from {only_from} to {to}")
    ends = to in TERMINAL
    values: dict[str, Any] = {**change.values, "status": to}
    if ends:
        values |= {"ready": False, "lease_owner": None, "waiting_for": None}
        values |= {"pinned_worker": None, "ended_at": max(datetime.now(UTC), run.created_at)}
    event = NewEvent(f"run.{to}" if ends else "run.started", data or {})
    audit_event = AuditEvent(
        event.type, actor, "run", run.id, run.tenant_id, run.workspace_id, data or {}
    )
    moved = replace(
        change,
        values=values,
        events=[*change.events, event],
        audit_events=[*change.audit_events, audit_event],
        ended=ends,
        delete_secrets=ends and run.holds_secrets,
    )
    if apply(moved) is None:
        raise InvalidTransition(f"the run {run.id} is no longer {only_from} under this lease")


def start_or_resume(run: Run, *, worker_id: str, steps: Sequence[StepChange] = ()) -> bool:
    """Lease a claimable run to a worker under a new epoch, with a free slot; False: another worker
    was first, or no slot is free.

    A queued run starts, and `steps` with it; one that was released or waited for a person resumes.
    """
    data = {"attempt": run.times_lost + 1, "workerId": worker_id}
    values: dict[str, Any] = {"lease_owner": worker_id, "epoch": Plus(1), "waiting_for": None}
    starts = run.status == RunStatus.QUEUED
    if starts:
        values |= {"status": RunStatus.RUNNING, "started_at": datetime.now(UTC)}
    event = NewEvent("run.started" if starts else "run.resumed", data)
    scope = run.tenant_id, run.workspace_id
    guard = {"status": run.status, "epoch": run.epoch, "ready": True, "lease_owner": None}
    change = Transition(
        run,
        guard,
        values,
        events=[event, *(event for step in steps for event in step.events)],
        steps=steps,
        audit_events=[AuditEvent(event.type, f"worker:{worker_id}", "run", run.id, *scope, data)],
        worker_id=worker_id,
        epoch=run.epoch + 1,
        take_slot=True,
    )
    return apply(change) is not None
