"""Calls of tools that the audit log tells of twice: as they begin, and what came of them.

A call that has begun leaves a row here with its opening (`tool.called`), and whoever takes that row
away writes the closing: so there is exactly one of each, whatever dies in between. That is, in this
order, who knows most of it: the door or the worker that made the call; the transition that took the
run off its worker (a cancel, the end of its time, a lost lease); the scheduler.
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
from decisions.authorization.authorize import ToolUse
from decisions.infra.preconditions import StillSo
from decisions.infra.prepared_statements import Statement
from decisions.infra.processes import is_gone, this_process
from decisions.models import AuditEntry
from runners.tools.base import Effect
from runners.tools.registry import get_tool
from runs.models import OpenCall, Run, RunStatus

INTERRUPTED = "interrupted"  # the code of a call that did not come to its end
WORKER_LOST = "WORKER_LOST"
GIVEN_UP = timedelta(hours=1)  # a direct call takes minutes at most; its process may be elsewhere


@dataclass(frozen=True, slots=True)
class CarriedCall:
    """A direct call that a run is made for.

    Attributes:
        use: what policy is asked about.
        call_id: what the audit log names it.
        opening: the audit row that tells that it begins, but for the run.
    """

    use: ToolUse
    call_id: str
    opening: AuditEvent

    def begin_with(self, run_id: str) -> None:
        """Tell that it begins, and which run carries it, in the caller's transaction."""
        told = {**self.opening.metadata, "runId": run_id}
        start_direct_call(self.call_id, replace(self.opening, metadata=told))


@dataclass(slots=True)
class CallStart:
    """A call that begins with the start of its step, in one statement of PostgreSQL; where what was
    known is not so any more, the step starts without it.

    Attributes:
        row, entry: what tells that it is under way, and the audit row of its beginning.
        is_open: whether it was told; set by whoever wrote the transition.
    """

    row: OpenCall
    entry: AuditEntry
    if_still: Sequence[StillSo]
    is_open: bool = False

    @classmethod
    def of_run(
        cls, call_id: str, opening: AuditEvent, run: Run, *, if_still: Sequence[StillSo]
    ) -> CallStart:
        """Return a call of a run's step."""
        row = _open_call(call_id, opening, run_id=run.id, epoch=run.epoch)
        return cls(row, entry_for(opening), if_still)


def aborted_call_data(code: str, tool: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is told of a call of a tool that nobody saw the end of; `about` is what was told
    of it before.
    """
    known = None if about.get("elsewhere") else get_tool(tool)
    effect = {} if known is not None and known.effect == Effect.READ else {"effect": "unknown"}
    return {"ok": False, "code": code, **effect}


def start_direct_call(call_id: str, opening: AuditEvent) -> None:
    """Tell that a direct call begins, in the caller's transaction."""
    _open_call(call_id, opening).save(force_insert=True)
    record(opening)


def start_run_call(
    call_id: str, opening: AuditEvent, run: Run, *, if_still: Sequence[StillSo] = ()
) -> bool:
    """Tell that a call of a run's step begins; commits.

    False where the run is not under that lease any more, or what was known is not so any more
    (`if_still`, on PostgreSQL alone): then nothing was written, and the call is not to be made.
    """
    begun = _open_call(call_id, opening, run_id=run.id, epoch=run.epoch)
    if connection.vendor == "postgresql":
        return _open_in_one_statement(begun, entry_for(opening), run, if_still)
    ours = Run.objects.filter(id=run.id, epoch=run.epoch, status=RunStatus.RUNNING)
    with transaction.atomic():
        if not ours.exists():
            return False
        begun.save(force_insert=True)
        record(opening)
    return True


def _open_in_one_statement(
    begun: OpenCall, entry: AuditEntry, run: Run, if_still: Sequence[StillSo]
) -> bool:
    """Do it in one round trip and one commit: this is what a call on a runner costs most."""
    statement = Statement()
    wheres = ["id = %s AND epoch = %s AND status = %s", *(known.sql for known in if_still)]
    statement.add(
        "r",
        f"SELECT id FROM runs_run WHERE {' AND '.join(wheres)} FOR UPDATE",  # noqa: S608
        run.id,
        run.epoch,
        RunStatus.RUNNING.value,
        *(param for known in if_still for param in known.params),
    )
    statement.insert("opened", [begun])
    statement.insert("told", [entry])
    return statement.run("SELECT id FROM r") is not None


def finish_direct_call(call_id: str, closing: AuditEvent) -> bool:
    """Tell what came of a direct call, unless it was given up before; in the caller's
    transaction.
    """
    if not _take(OpenCall.objects.filter(id=call_id)):
        return False
    record(closing)
    return True


def delete_finished_calls(call_ids: Sequence[str]) -> None:
    """Note that these calls of a run are closed: their closing is written by the caller, in the
    same transaction and under the run's lease.
    """
    OpenCall.objects.filter(id__in=call_ids).delete()


def abort_calls(run_id: str, code: str) -> None:
    """Close every call of a run that is still open, in the transaction that ends its lease, and
    after the guarded change of the run's row: from there on none begins.
    """
    _cut(OpenCall.objects.filter(run_id=run_id), code)


def abort_stale_calls() -> int:
    """Close what nobody else will: direct calls whose process is gone, or that are an hour old, and
    calls of runs that are not under the lease in which they began. Return how many.
    """
    direct = OpenCall.objects.filter(run_id__isnull=True)
    over = datetime.now(UTC) - GIVEN_UP
    given_up = [call.id for call in direct if call.opened_at < over or is_gone(call.process)]
    still = Run.objects.filter(
        id=OuterRef("run_id"), epoch=OuterRef("epoch"), status=RunStatus.RUNNING
    )
    strays = OpenCall.objects.filter(~Exists(still), run_id__isnull=False)
    given_up += strays.values_list("id", flat=True)
    with transaction.atomic():
        return _cut(OpenCall.objects.filter(id__in=given_up), INTERRUPTED)


def _open_call(call_id: str, opening: AuditEvent, **of_run: Any) -> OpenCall:
    return OpenCall(
        id=call_id,
        opening=asdict(opening),
        process=_process(os.getpid()),
        opened_at=datetime.now(UTC),
        **of_run,
    )


def _cut(calls: QuerySet[OpenCall], code: str) -> int:
    """Close calls; two at once close each call once."""
    closed = 0
    for call in calls.order_by("opened_at", "id"):
        if _take(OpenCall.objects.filter(id=call.id)):
            record(_closing(call.opening, code))
            closed += 1
    return closed


def _take(call: QuerySet[OpenCall]) -> bool:
    """Take the right to close a call; False: somebody else has it."""
    return call.delete()[0] == 1


def _closing(opening: Mapping[str, Any], code: str) -> AuditEvent:
    begun = AuditEvent(**opening)
    tool = str(begun.metadata.get("tool", begun.resource_id))  # a direct call is about its tool
    told = {**begun.metadata, **aborted_call_data(code, tool, begun.metadata)}
    return replace(begun, action="tool.failed", metadata=told)


@lru_cache(maxsize=1)
def _process(pid: int) -> str:
    """Return this process's mark; `pid` tells a fork from its parent."""
    return this_process()
