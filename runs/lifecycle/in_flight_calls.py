"""The end of tool calls in flight whose process records none.

The start of a call (`runs.calls.start`, `tool.called`) inserts a row of OpenCall; the process that
deletes the row writes the end, so each call has exactly one of both, whichever process dies. The
end is written by, in this order: the worker or the API process that makes the call; the transition
that ends the run's lease (a cancel, a timeout, an expired lease); the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from decisions.audit.record import AuditEvent, record
from decisions.foundation.infra.processes import has_ended
from runners.tools.base import Effect
from runners.tools.registry import get_tool
from runs.models import OpenCall, Run, RunStatus

INTERRUPTED = "interrupted"  # the code of a call that did not end by itself
WORKER_LOST = "WORKER_LOST"
# A direct call takes minutes at most. The age decides where its process is on another machine.
DIRECT_CALL_MAX_AGE = timedelta(hours=1)


def aborted_call_data(code: str, tool: str, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outcome of a call whose end was not seen, for its audit event or its caller.

    `details` is the data of its `tool.called`. The effect is unknown, unless the tool only reads.
    """
    known = None if details.get("elsewhere") else get_tool(tool)
    effect = {} if known is not None and known.effect == Effect.READ else {"effect": "unknown"}
    return {"ok": False, "code": code, **effect}


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


def _abort(calls: QuerySet[OpenCall], code: str) -> int:
    aborted = 0
    for call in calls.order_by("opened_at", "id"):
        if OpenCall.objects.filter(id=call.id).delete()[0]:  # else its end was recorded meanwhile
            record(_aborted_event(call.opening, code))
            aborted += 1
    return aborted


def _aborted_event(opening: Mapping[str, Any], code: str) -> AuditEvent:
    started = AuditEvent(**opening)
    # The resource of a direct call's event is its tool.
    tool = str(started.metadata.get("tool", started.resource_id))
    metadata = {**started.metadata, **aborted_call_data(code, tool, started.metadata)}
    return replace(started, action="tool.failed", metadata=metadata)
