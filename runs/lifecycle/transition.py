"""Write a transition of a run: a guarded update with everything that belongs to it, or nothing.

`runs.lifecycle.writes` describes what is written, `runs.lifecycle.writers` writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from django.db import connection, transaction
from django.db.models import Model

from decisions.foundation.database.repeat import repeat_after_conflict
from decisions.foundation.infra.preconditions import Precondition
from runs.events.notify import publish_after_commit
from runs.lifecycle.changes import NewEvent, Transition
from runs.lifecycle.in_flight_calls import abort_calls
from runs.lifecycle.writers import write_in_one_statement, write_in_sequence
from runs.lifecycle.writes import Writes, writes_of, writes_of_new_run
from runs.models import Run, RunStep
from runs.signals import run_of_task_changed


def apply(change: Transition) -> int | None:
    """Write the transition in the caller's transaction, or in one of its own, and notify the run's
    readers after the commit.

    Returns the run's last seq; None where the guard held no row or no slot was free: then nothing
    was written.
    """
    last_seq = repeat_after_conflict(lambda: _apply(change))
    if last_seq is not None:
        publish_after_commit(change.run.id, last_seq, [event.type for event in change.events])
    return last_seq


def _apply(change: Transition) -> int | None:
    if not change.abort_code and not change.run.task_id:
        return _write(writes_of(change, datetime.now(UTC)))
    with transaction.atomic():
        if change.abort_code:
            _lock(change.run)
        last_seq = _write(writes_of(change, datetime.now(UTC)))
        if last_seq is not None:
            _write_dependents(change)
    return last_seq


def _lock(run: Run) -> None:
    """Wait for a write in progress: a statement that has begun before it commits does not see the
    artifacts that it inserts, and would not let them expire.
    """
    list(Run.objects.select_for_update(no_key=True).filter(id=run.id).values_list("id"))


def _write_dependents(change: Transition) -> None:
    if change.abort_code:
        abort_calls(change.run.id, change.abort_code)
    if change.run.task_id:
        run_of_task_changed.send(Run, change=change)


def insert_run(
    run: Run,
    steps: list[RunStep],
    event: NewEvent,
    others: Sequence[Model],
    preconditions: Sequence[Precondition] = (),
) -> bool:
    """Insert a new run with its steps, first event and `others`, in the caller's transaction or
    one of its own; False where a precondition does not hold: then nothing was written.
    """
    writes = writes_of_new_run(run, steps, event, others, preconditions)
    if repeat_after_conflict(lambda: _write(writes)) is None:
        return False
    # Lists of runs read it; the caller who waits for this run takes its state from the row.
    publish_after_commit(run.id, 1, [event.type])
    return True


def _write(writes: Writes) -> int | None:
    in_one = connection.vendor == "postgresql"
    return write_in_one_statement(writes) if in_one else write_in_sequence(writes)
