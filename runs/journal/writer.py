"""Write the step journal: what a worker records about a run, each batch in one transaction under
its lease.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from artifacts.services import StoredBlob
from decisions.audit.record import AuditEvent
from runs.lifecycle.changes import NewEvent, Plus, StepChange, Transition
from runs.lifecycle.in_flight_calls import INTERRUPTED
from runs.lifecycle.lease import Lease, LeaseLost
from runs.lifecycle.state_machine import InvalidTransition, move
from runs.lifecycle.transition import apply
from runs.models import UNFINISHED, Run, RunStatus, StepStatus


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a run."""

    status: RunStatus
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    summary: str = ""
    warnings: Sequence[str] = ()
    next_actions: Sequence[Mapping[str, Any]] = ()
    blobs: Sequence[StoredBlob] = ()


def write(
    lease: Lease,
    changes: Sequence[StepChange],
    *,
    active_ms: int,
    events: Sequence[NewEvent] = (),
    ending: Ending | None = None,
    delete_secrets: bool = False,
) -> None:
    """Commit changes and events of the run's steps, and the end of the run if there is an `ending`.

    Args:
        delete_secrets: delete the run's secret inputs in the same commit.

    Raises:
        LeaseLost: The run is no longer under this lease; nothing was written.
    """
    abort_code = "" if ending is None else _abort_code(lease, changes, ending)
    transition = build_transition(
        lease, changes, active_ms=active_ms, events=events, leave_aborted=bool(abort_code)
    )
    transition = replace(transition, delete_secrets=delete_secrets)
    if ending is not None:
        try:
            actor = f"worker:{lease.worker_id}"
            end_run(ending, transition, actor=actor, abort_code=abort_code)
        except InvalidTransition:
            raise LeaseLost(lease.run.id) from None
        return
    if apply(transition) is None:
        raise LeaseLost(lease.run.id)
    in_flight, finished = lease.in_flight_calls, set(transition.finished_calls)
    in_flight[:] = [call_id for call_id in in_flight if call_id not in finished]
    starts = [change.call_start for change in changes if change.call_start is not None]
    in_flight.extend(start.row.id for start in starts if start.is_written)


def build_transition(
    lease: Lease,
    changes: Sequence[StepChange],
    *,
    active_ms: int,
    events: Sequence[NewEvent] = (),
    leave_aborted: bool = False,
) -> Transition:
    """Return changes and events of the run's steps as a transition under the lease, unwritten.

    Args:
        leave_aborted: leave out the calls that did not end by themselves; the transition that ends
            the lease records them, with its `abort_code`.
    """
    blobs = [(blob, change.index) for change in changes for blob in change.blobs]
    all_events = [*events]
    for change in changes:
        created = (_artifact_created(blob, change.index) for blob in change.blobs)
        all_events += [*change.events, *created]
    skipped = sum(change.status == StepStatus.SKIPPED for change in changes)
    finished = sum(change.status not in UNFINISHED for change in changes) - skipped
    added = sum(change.new is not None for change in changes) - skipped
    values: dict[str, Any] = {} if lease.is_helper else {"active_ms": active_ms}
    if finished:
        values |= {"done_steps": Plus(finished), "losses_without_progress": 0}
    if added:
        values["total_steps"] = Plus(added)
    return Transition(
        lease.run,
        lease.guard,
        values,
        events=all_events,
        steps=changes,
        blobs=blobs,
        audit_events=_call_events(lease.run, changes, leave_aborted=leave_aborted),
        finished_calls=[
            call.call_id
            for change in changes
            for call in change.calls
            if call.call_id and not (leave_aborted and call.is_aborted)
        ],
        worker_id=lease.worker_id,
        epoch=lease.epoch,
    )


def _abort_code(lease: Lease, changes: Sequence[StepChange], ending: Ending) -> str:
    """Return the error code for calls still in flight when the run ends; empty: there are none."""
    calls = (call for change in changes for call in change.calls)
    ended = {call.call_id for call in calls if not call.is_aborted}
    if ended.issuperset(lease.in_flight_calls):
        return ""
    return str(ending.error["errorCode"]) if ending.error is not None else INTERRUPTED


def end_run(
    ending: Ending,
    transition: Transition,
    *,
    actor: str,
    abort_code: str,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Write a transition together with the end of its run.

    Args:
        abort_code: the error code of tool calls still in flight; empty if there are none.
        more: data of the event and audit event, besides summary and error.

    Raises:
        InvalidTransition: The guard held no row; nothing was written.
    """
    values = {
        **transition.values,
        "result": ending.result,
        "error": ending.error,
        "result_summary": ending.summary[:500],
        "warnings": list(ending.warnings),
        "next_actions": list(ending.next_actions),
    }
    data: dict[str, Any] = {"summary": ending.summary[:500], **(more or {})}
    if ending.error is not None:
        data |= {"errorCode": ending.error["errorCode"], "message": ending.error["message"]}
    last = replace(
        transition,
        values=values,
        events=[*transition.events, *(_artifact_created(blob, None) for blob in ending.blobs)],
        blobs=[*transition.blobs, *((blob, None) for blob in ending.blobs)],
        free_slot=True,
        abort_code=abort_code,
    )
    move(last, ending.status, actor=actor, data=data)


def _artifact_created(blob: StoredBlob, step_index: int | None) -> NewEvent:
    data = {
        "artifactId": blob.artifact_id,
        "kind": blob.kind,
        "name": blob.name,
        "mimeType": blob.mime_type,
        "sizeBytes": blob.size_bytes,
    }
    return NewEvent("artifact.created", data | ({} if step_index is None else {"step": step_index}))


def _call_events(
    run: Run, changes: Sequence[StepChange], *, leave_aborted: bool
) -> list[AuditEvent]:
    """Return the audit events of the tool calls that ended."""
    audit_events: list[AuditEvent] = []
    for change in changes:
        for call in change.calls:
            if call.call_id and call.is_aborted and leave_aborted:
                continue
            audit_events += call.end_events(run, change.index)
    return audit_events


def save_active_ms(lease: Lease, active_ms: int) -> bool:
    """Store the running time of a run whose step is long; False where the lease has ended."""
    rows = Run.objects.filter(
        id=lease.run.id, epoch=lease.epoch, lease_owner=lease.worker_id, status=RunStatus.RUNNING
    )
    return rows.update(active_ms=active_ms) == 1
