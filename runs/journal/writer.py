"""The step journal: what a worker writes while it works on a run, each batch one transaction under
its lease.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from artifacts.services import StoredBlob
from decisions.audit.record import AuditEvent
from runs.lifecycle import call_records
from runs.lifecycle.changes import NewEvent, Plus, StepChange, Transition
from runs.lifecycle.in_flight_calls import INTERRUPTED
from runs.lifecycle.status import InvalidTransition, move
from runs.lifecycle.transition import apply
from runs.models import UNFINISHED, Run, RunStatus
from runs.queue.leases import Lease, LeaseLost


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ends."""

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
    forget_secrets: bool = False,
) -> None:
    """Write what happened since the last time, and the end of the run with its last step.

    With `forget_secrets` the run's secret inputs go in the same commit.

    Raises:
        LeaseLost: The run is not ours any more; nothing was written.
    """
    abort_code = "" if ending is None else _cuts(lease, changes, ending)
    written = lines(lease, changes, active_ms=active_ms, events=events, cut_later=bool(abort_code))
    written = replace(written, forget_secrets=forget_secrets)
    if ending is None:
        if apply(written) is None:
            raise LeaseLost(lease.run.id)
        lease.in_flight_calls[:] = [call_id for call_id in lease.in_flight_calls if call_id not in written.finished_calls]
        begun = [change.opens for change in changes if change.opens is not None]
        lease.in_flight_calls.extend(call.row.id for call in begun if call.is_open)
    else:
        _end(ending, written, abort_code=abort_code)


def lines(
    lease: Lease,
    changes: Sequence[StepChange],
    *,
    active_ms: int,
    events: Sequence[NewEvent] = (),
    cut_later: bool = False,
) -> Transition:
    """Return what happened since the last time as an unwritten transition under the lease.

    `cut_later`: calls that did not come to their end are told of by what follows, which knows why.
    """
    told, blobs = [*events], [(blob, change.index) for change in changes for blob in change.blobs]
    for change in changes:
        told += [*change.events, *(_artifact_created(blob, change.index) for blob in change.blobs)]
    finished = sum(change.status not in UNFINISHED for change in changes)
    appended = sum(change.new is not None for change in changes)
    values: dict[str, Any] = {} if lease.is_helper else {"active_ms": active_ms}
    if finished:
        values["done_steps"] = Plus(finished)
    if appended:
        values["total_steps"] = Plus(appended)
    return Transition(
        lease.run,
        lease.guard,
        values,
        events=told,
        steps=changes,
        blobs=blobs,
        audit_events=_calls(lease.run, changes, cut_later=cut_later),
        finished_calls=[
            call.call_id
            for change in changes
            for call in change.calls
            if call.call_id and not (cut_later and call.is_aborted)
        ],
        worker_id=lease.worker_id,
        epoch=lease.epoch,
    )


def _cuts(lease: Lease, changes: Sequence[StepChange], ending: Ending) -> str:
    """Return what is told of calls that the end of the run cuts off; nothing where every call that
    began is over.
    """
    over = {call.call_id for change in changes for call in change.calls if not call.is_aborted}
    if over.issuperset(lease.in_flight_calls):
        return ""
    return str(ending.error["errorCode"]) if ending.error is not None else INTERRUPTED


def _end(ending: Ending, written: Transition, *, abort_code: str) -> None:
    values = {
        **written.values,
        "result": ending.result,
        "error": ending.error,
        "result_summary": ending.summary[:500],
        "warnings": list(ending.warnings),
        "next_actions": list(ending.next_actions),
    }
    data: dict[str, Any] = {"summary": ending.summary[:500]}
    if ending.error is not None:
        data |= {"errorCode": ending.error["errorCode"], "message": ending.error["message"]}
    last = replace(
        written,
        values=values,
        events=[*written.events, *(_artifact_created(blob, None) for blob in ending.blobs)],
        blobs=[*written.blobs, *((blob, None) for blob in ending.blobs)],
        free_slot=True,
        abort_code=abort_code,
    )
    try:
        move(last, ending.status, actor=f"worker:{written.worker_id}", data=data)
    except InvalidTransition:
        raise LeaseLost(written.run.id) from None


def _artifact_created(blob: StoredBlob, step_index: int | None) -> NewEvent:
    data = {
        "artifactId": blob.artifact_id,
        "kind": blob.kind,
        "name": blob.name,
        "mimeType": blob.mime_type,
        "sizeBytes": blob.size_bytes,
    }
    return NewEvent("artifact.created", data | ({} if step_index is None else {"step": step_index}))


def _calls(run: Run, changes: Sequence[StepChange], *, cut_later: bool) -> list[AuditEvent]:
    """Return the audit rows of the tool calls that are over."""
    audit_events: list[AuditEvent] = []
    for change in changes:
        for call in change.calls:
            if call.call_id and call.is_aborted and cut_later:
                continue
            audit_events.append(call_records.over(run, change.index, call))
            audit_events += call_records.refused_address(run, change.index, call)
    return audit_events


def save_active_ms(lease: Lease, active_ms: int) -> bool:
    """Keep a long step's clock in the row with the heartbeat; tell whether the lease is ours."""
    rows = Run.objects.filter(
        id=lease.run.id, epoch=lease.epoch, lease_owner=lease.worker_id, status=RunStatus.RUNNING
    )
    return rows.update(active_ms=active_ms) == 1
