"""The sole writer of Run.status. The guard is the UPDATE's WHERE; status, events and audit commit
together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from artifacts.services import start_expiry
from decisions.audit import Deed, record
from runs.events import Logged, NewEvent, log_events
from runs.models import TERMINAL, OutboxEntry, Run, RunStatus
from runs.rows import not_before

ALLOWED: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.QUEUED: frozenset({RunStatus.RUNNING, RunStatus.FAILED, RunStatus.CANCELED}),
    RunStatus.RUNNING: TERMINAL,
    RunStatus.SUCCEEDED: frozenset(),
    RunStatus.FAILED: frozenset(),
    RunStatus.PARTIAL_SUCCESS: frozenset(),
    RunStatus.CANCELED: frozenset(),
}


class InvalidTransition(Exception):
    """The run is not where the caller thought, or the caller's lease is old;
    nothing was written.
    """


def move(
    run_id: str,
    to: RunStatus,
    *,
    actor: str,
    only_from: RunStatus,
    epoch: int | None = None,
    values: Mapping[str, Any] | None = None,
    before: Sequence[NewEvent] = (),
    data: Mapping[str, Any] | None = None,
) -> Logged:
    """Move a run to another status; commits with the caller's transaction, or by itself.

    Args:
        run_id: the run.
        to: its next status.
        actor: who moves it, for the audit row.
        only_from: the status it must have now.
        epoch: the lease it must be under; None for moves that no worker makes (cancel, time out
            in the queue).
        values: further columns of the same statement (error, result, lease, …).
        before: events that belong before the event of this move (the last step's).
        data: the data of the move's own event and audit row.

    Raises:
        InvalidTransition: The pair is not allowed, or the guard held no row.
    """
    if to not in ALLOWED[only_from]:
        raise InvalidTransition(f"{only_from} -> {to} is no transition")
    rows = Run.objects.filter(status=only_from)
    if epoch is not None:
        rows = rows.filter(epoch=epoch)
    changes: dict[str, Any] = {"status": to, **(values or {})}
    now = datetime.now(UTC)
    if to in TERMINAL:
        changes |= {"ready": False, "lease_owner": None, "waiting_for": None, "pinned_worker": None}
        changes["ended_at"] = not_before("created_at", now)
    elif only_from == RunStatus.QUEUED:
        changes["started_at"] = now
    event = NewEvent("run.started" if to == RunStatus.RUNNING else f"run.{to}", data or {})
    with transaction.atomic(savepoint=False):
        logged = log_events(rows, run_id, [*before, event], changes)
        if logged is not None:
            if to in TERMINAL:
                start_expiry(run_id, now)
                OutboxEntry.objects.filter(run_id=run_id).delete()
            place = logged.tenant_id, logged.workspace_id
            record(Deed(event.type, actor, "run", run_id, *place, data or {}))
    if logged is None:  # raised outside, so that the caller's transaction stays whole
        raise InvalidTransition(f"{run_id} is not {only_from} under that lease")
    return logged


def lease(
    run_id: str, *, status: RunStatus, worker_id: str, data: Mapping[str, Any]
) -> Logged | None:
    """Give an unclaimed run to a worker, in the caller's transaction: a new epoch, and running from
    now on.

    A queued run starts; one that lost its worker or waited for a person goes on. None: somebody was
    first.
    """
    values = {"lease_owner": worker_id, "epoch": F("epoch") + 1, "waiting_for": None}
    unclaimed = Run.objects.filter(status=status, ready=True, lease_owner__isnull=True)
    if status == RunStatus.QUEUED:
        values |= {"status": RunStatus.RUNNING, "started_at": datetime.now(UTC)}
        event = NewEvent("run.started", data)
    else:
        event = NewEvent("run.resumed", data)
    logged = log_events(unclaimed, run_id, [event], values)
    if logged is not None:
        actor = f"worker:{worker_id}"
        record(Deed(event.type, actor, "run", run_id, logged.tenant_id, logged.workspace_id, data))
    return logged
