"""Tool calls in flight, each with two audit events: its start and its end.

The start of a call (`tool.called`) inserts a row of OpenCall; the process that deletes the row
writes the end, so each call has exactly one of both, whichever process dies. The end is written by,
in this order: the worker or the API process that makes the call; the transition that ends the
run's lease (a cancel, a timeout, an expired lease); the scheduler.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet

from decisions.audit.record import AuditEvent, entry_for, record
from decisions.authorization.authorize import ToolCallRequest
from decisions.foundation.infra.preconditions import Precondition, all_hold
from decisions.foundation.infra.prepared_statements import SqlStatement
from decisions.foundation.infra.processes import has_ended, process_identity
from decisions.models import AuditEntry
from runners.tools.base import Effect
from runners.tools.registry import get_tool
from runs.models import OpenCall, Run, RunStatus

INTERRUPTED = "interrupted"  # the code of a call that did not end by itself
WORKER_LOST = "WORKER_LOST"
# A direct call takes minutes at most. The age decides where its process is on another machine.
DIRECT_CALL_MAX_AGE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class DirectCallOfRun:
    """A direct call that a run makes for its caller.

    Attributes:
        request: the call as policy judges it.
        call_id: its id in the audit log.
        started_event: its audit event `tool.called`, without the run's id.
    """

    request: ToolCallRequest
    call_id: str
    started_event: AuditEvent

    def start_with(self, run_id: str) -> None:
        """Record that it starts, with the id of its run, in the caller's transaction."""
        metadata = {**self.started_event.metadata, "runId": run_id}
        start_call(self.call_id, replace(self.started_event, metadata=metadata))


@dataclass(slots=True)
class CallStart:
    """The start of a step's first call, written by the transition that starts the step. If a
    precondition does not hold, the step starts without the call.

    Attributes:
        row, entry: the row of the call in flight, and the audit row of its start.
        is_written: whether they were written; set when the transition is written.
    """

    row: OpenCall
    entry: AuditEntry
    preconditions: Sequence[Precondition]
    is_written: bool = False

    @classmethod
    def of_run(
        cls,
        call_id: str,
        started_event: AuditEvent,
        run: Run,
        *,
        preconditions: Sequence[Precondition],
    ) -> CallStart:
        """Return the start of a call of the run."""
        row = _open_call(call_id, started_event, run_id=run.id, epoch=run.epoch)
        return cls(row, entry_for(started_event), preconditions)


def aborted_call_data(code: str, tool: str, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outcome of a call whose end was not seen, for its audit event or its caller.

    `details` is the data of its `tool.called`. The effect is unknown, unless the tool only reads.
    """
    known = None if details.get("elsewhere") else get_tool(tool)
    effect = {} if known is not None and known.effect == Effect.READ else {"effect": "unknown"}
    return {"ok": False, "code": code, **effect}


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
    of_run = {} if run is None else {"run_id": run.id, "epoch": run.epoch}
    call = _open_call(call_id, started_event, **of_run)
    if connection.vendor == "postgresql":
        return _insert_in_one_statement(call, entry_for(started_event), run, preconditions)
    with transaction.atomic():
        if not (run is None or is_leased(run)) or not all_hold(preconditions):
            return False
        call.save(force_insert=True)
        record(started_event)
    return True


def is_leased(run: Run) -> bool:
    """Return whether the run is still under the lease with which it was read."""
    rows = Run.objects.filter(id=run.id, epoch=run.epoch, status=RunStatus.RUNNING)
    return rows.exists()


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


def finish_direct_call(call_id: str, ended_event: AuditEvent) -> bool:
    """Record the end of a direct call, in the caller's transaction; False: it was aborted before,
    and nothing was written.
    """
    if not _delete(OpenCall.objects.filter(id=call_id)):
        return False
    record(ended_event)
    return True


def abort_calls(run_id: str, code: str) -> None:
    """Record with `code` the end of every call of a run still in flight.

    To be called in the transaction that ends the run's lease, after the guarded update of its row:
    from there on no call of this lease starts.
    """
    _abort(OpenCall.objects.filter(run_id=run_id), code)


def abort_stale_calls() -> int:
    """Record the end of calls that no process will: direct calls whose process is gone or that are
    older than DIRECT_CALL_MAX_AGE, and calls of runs under an earlier lease. Return how many.
    """
    direct = OpenCall.objects.filter(run_id__isnull=True)
    oldest = datetime.now(UTC) - DIRECT_CALL_MAX_AGE
    stale = [call.id for call in direct if call.opened_at < oldest or has_ended(call.process)]
    leased = Run.objects.filter(
        id=OuterRef("run_id"), epoch=OuterRef("epoch"), status=RunStatus.RUNNING
    )
    of_earlier_leases = OpenCall.objects.filter(~Exists(leased), run_id__isnull=False)
    stale += of_earlier_leases.values_list("id", flat=True)
    aborted = 0
    for call_id in stale:
        with transaction.atomic():  # one row is locked at a time
            aborted += _abort(OpenCall.objects.filter(id=call_id), INTERRUPTED)
    return aborted


def _open_call(call_id: str, started_event: AuditEvent, **of_run: Any) -> OpenCall:
    return OpenCall(
        id=call_id,
        opening=asdict(started_event),
        process=_process(os.getpid()),
        opened_at=datetime.now(UTC),
        **of_run,
    )


def _abort(calls: QuerySet[OpenCall], code: str) -> int:
    aborted = 0
    for call in calls.order_by("opened_at", "id"):
        if _delete(OpenCall.objects.filter(id=call.id)):
            record(_aborted_event(call.opening, code))
            aborted += 1
    return aborted


def _delete(call: QuerySet[OpenCall]) -> bool:
    """Delete the row of a call; False: another process did, and writes the call's end."""
    return call.delete()[0] == 1


def _aborted_event(opening: Mapping[str, Any], code: str) -> AuditEvent:
    started = AuditEvent(**opening)
    # The resource of a direct call's event is its tool.
    tool = str(started.metadata.get("tool", started.resource_id))
    metadata = {**started.metadata, **aborted_call_data(code, tool, started.metadata)}
    return replace(started, action="tool.failed", metadata=metadata)


@lru_cache(maxsize=1)
def _process(pid: int) -> str:
    """Return this process's identity; `pid` makes a fork compute its own."""
    return process_identity()
