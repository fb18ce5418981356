"""Record the start of a tool call, in one statement that also tests what was read for it: that the
run is under its lease, that policy and target have not changed, and that no person has taken over
the page. The row that it inserts is deleted with the write of the call's end
(`runs.lifecycle.in_flight_calls`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import lru_cache

from django.db import connection, transaction

from decisions.audit.record import AuditEvent, entry_for, record
from decisions.foundation.infra.preconditions import Precondition, all_hold
from decisions.foundation.infra.prepared_statements import SqlStatement
from decisions.foundation.infra.processes import process_identity
from decisions.models import AuditEntry
from runs.lifecycle.changes import CallStart
from runs.models import OpenCall, Run, RunStatus

MAX_TRIES = 5  # to read policy and target and start the call before either changes
CHANGED_MEANWHILE = "The policy rules or the target kept changing; the call was not made."


def start_call(
    call_id: str,
    started_event: AuditEvent,
    *,
    run: Run | None = None,
    preconditions: Sequence[Precondition] = (),
) -> bool:
    """Record the start of a call, in the caller's transaction or one of its own.

    False where a precondition does not hold, or the run is no longer under this lease: then nothing
    was written, and the call must not be made.

    Args:
        run: the run whose step makes the call; None for a direct call.
    """
    call = _open_call(call_id, started_event, run)
    if connection.vendor == "postgresql":
        return _insert_in_one_statement(call, entry_for(started_event), run, preconditions)
    with transaction.atomic():
        if not (run is None or is_leased(run)) or not all_hold(preconditions):
            return False
        call.save(force_insert=True)
        record(started_event)
    return True


def start_with_step(
    call_id: str, started_event: AuditEvent, run: Run, preconditions: Sequence[Precondition]
) -> CallStart:
    """Return the start of a step's first call, for the transition that starts the step."""
    row = _open_call(call_id, started_event, run)
    return CallStart(row, entry_for(started_event), preconditions)


def is_leased(run: Run) -> bool:
    """Return whether the run is still under the lease with which it was read."""
    rows = Run.objects.filter(id=run.id, epoch=run.epoch, status=RunStatus.RUNNING)
    return rows.exists()


def _open_call(call_id: str, started_event: AuditEvent, run: Run | None) -> OpenCall:
    return OpenCall(
        id=call_id,
        run_id=None if run is None else run.id,
        epoch=0 if run is None else run.epoch,
        opening=asdict(started_event),
        process=_process(os.getpid()),
        opened_at=datetime.now(UTC),
    )


def _insert_in_one_statement(
    call: OpenCall, entry: AuditEntry, run: Run | None, preconditions: Sequence[Precondition]
) -> bool:
    """One round trip and one commit, which are most of what a call on a runner costs."""
    statement = SqlStatement()
    wheres = [condition.sql for condition in preconditions] or ["true"]
    params = [param for condition in preconditions for param in condition.params]
    if run is None:
        statement.add("r", f"SELECT 1 AS id WHERE {' AND '.join(wheres)}", *params)
    else:
        wheres = ["id = %s AND epoch = %s AND status = %s", *wheres]
        rows = f"SELECT id FROM runs_run WHERE {' AND '.join(wheres)} FOR UPDATE"  # noqa: S608
        statement.add("r", rows, run.id, run.epoch, RunStatus.RUNNING.value, *params)
    statement.insert("opened", [call])
    statement.insert("audited", [entry])
    return statement.run("SELECT id FROM r") is not None


@lru_cache(maxsize=1)
def _process(pid: int) -> str:
    """Return this process's identity; `pid` makes a fork compute its own."""
    return process_identity()
