"""The step journal: what a worker writes while it works on a run, each batch one transaction under
its lease.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from artifacts.services import KeptBlob, save_artifacts
from decisions.audit import Deed, record_all
from runs.claims import Claim
from runs.events import Logged, NewEvent, log_events
from runs.models import Run, RunStatus, RunStep, StepStatus
from runs.slots import release_slot
from runs.state import InvalidTransition, move


class LeaseLost(Exception):
    """The run is not this worker's any more (canceled, or taken over): nothing was written, stop
    working on it.
    """


@dataclass(frozen=True, slots=True)
class StepChange:
    """A step's next line in the journal.

    Attributes:
        tool: the tool that was called, for the audit row of a finished call.
        events: what the change tells listeners, in order.
    """

    index: int
    status: StepStatus
    events: Sequence[NewEvent]
    output: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    blobs: Sequence[KeptBlob] = ()
    tool: str = ""
    args_digest: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ends."""

    status: RunStatus
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    summary: str = ""
    warnings: Sequence[str] = ()
    next_actions: Sequence[Mapping[str, Any]] = ()
    blobs: Sequence[KeptBlob] = field(default=())


def write(
    held: Claim,
    changes: Sequence[StepChange],
    *,
    active_ms: int,
    events: Sequence[NewEvent] = (),
    ending: Ending | None = None,
) -> None:
    """Write what happened since the last time, and the end of the run with its last step.

    Raises:
        LeaseLost: The run is not ours any more; nothing was written.
    """
    told = [*events, *(event for change in changes for event in change.events)]
    for change in changes:
        told += [_artifact_created(blob, change.index) for blob in change.blobs]
    finished = sum(change.status in (StepStatus.SUCCEEDED, StepStatus.FAILED) for change in changes)
    values: dict[str, Any] = {"active_ms": active_ms}
    if finished:
        values["done_steps"] = F("done_steps") + finished
    with transaction.atomic():
        logged = _end(held, ending, told, values) if ending else _go_on(held, told, values)
        if logged is not None:
            for change in changes:
                _write_step(held, change)
            _audit_calls(held, changes)
    if logged is None:
        raise LeaseLost(held.run.id)


def _go_on(held: Claim, told: Sequence[NewEvent], values: Mapping[str, Any]) -> Logged | None:
    rows = Run.objects.filter(
        epoch=held.epoch, lease_owner=held.worker_id, status=RunStatus.RUNNING
    )
    return log_events(rows, held.run.id, told, values)


def _end(
    held: Claim, ending: Ending, told: Sequence[NewEvent], values: Mapping[str, Any]
) -> Logged | None:
    run = held.run
    _save(run, ending.blobs, None)
    columns = {
        **values,
        "result": ending.result,
        "error": ending.error,
        "result_summary": ending.summary[:500],
        "warnings": list(ending.warnings),
        "next_actions": list(ending.next_actions),
    }
    data: dict[str, Any] = {"summary": ending.summary[:500]}
    if ending.error is not None:
        data |= {"errorCode": ending.error["errorCode"], "message": ending.error["message"]}
    before = [*told, *(_artifact_created(blob, None) for blob in ending.blobs)]
    try:
        logged = move(
            run.id, ending.status, actor=f"worker:{held.worker_id}", only_from=RunStatus.RUNNING,
            epoch=held.epoch, values=columns, before=before, data=data,
        )  # fmt: skip
    except InvalidTransition:
        transaction.set_rollback(True)
        return None
    release_slot(run.id, epoch=held.epoch)
    return logged


def _write_step(held: Claim, change: StepChange) -> None:
    now = datetime.now(UTC)
    values: dict[str, Any] = {"status": change.status, "epoch": held.epoch}
    if change.status == StepStatus.STARTED:
        values |= {"owner": held.worker_id, "started_at": now, "attempts": F("attempts") + 1}
    else:
        values |= {"output": change.output, "error": change.error, "ended_at": now}
    RunStep.objects.filter(run_id=held.run.id, index=change.index).update(**values)
    _save(held.run, change.blobs, change.index)


def _save(run: Run, blobs: Sequence[KeptBlob], step_index: int | None) -> None:
    if blobs:
        save_artifacts(
            blobs, tenant_id=run.tenant_id, workspace_id=run.workspace_id, run_id=run.id,
            step_index=step_index,
        )  # fmt: skip


def _artifact_created(blob: KeptBlob, step_index: int | None) -> NewEvent:
    data = {
        "artifactId": blob.artifact_id, "kind": blob.kind, "name": blob.name,
        "mimeType": blob.mime_type, "sizeBytes": blob.size_bytes,
    }  # fmt: skip
    return NewEvent("artifact.created", data | ({} if step_index is None else {"step": step_index}))


def _audit_calls(held: Claim, changes: Sequence[StepChange]) -> None:
    run = held.run
    record_all(
        [
            Deed(
                "tool.called", run.principal_id, "run", run.id, run.tenant_id, run.workspace_id,
                {
                    "tool": change.tool, "step": change.index, "argsDigest": change.args_digest,
                    "ok": change.error is None,
                    **({"errorCode": change.error["errorCode"]} if change.error else {}),
                },
            )
            for change in changes
            if change.tool and change.status != StepStatus.STARTED
        ]
    )  # fmt: skip


def save_active_ms(held: Claim, active_ms: int) -> bool:
    """Keep a long step's clock in the row with the heartbeat; tell whether the
    lease is still ours.
    """
    rows = Run.objects.filter(
        id=held.run.id, epoch=held.epoch, lease_owner=held.worker_id, status=RunStatus.RUNNING
    )
    return rows.update(active_ms=active_ms) == 1
