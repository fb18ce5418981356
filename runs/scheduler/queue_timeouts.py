"""Queue timeouts: fail synchronous runs that waited in the queue for their whole timeout."""

from __future__ import annotations

import logging

from django.db.models import QuerySet

from decisions.foundation.infra.staleness import ChangeWatch
from runs.journal.outcome import error_object
from runs.lifecycle.changes import Transition
from runs.lifecycle.state_machine import InvalidTransition, move
from runs.models import Run, RunStatus
from runs.task_templates.outcomes import next_actions

log = logging.getLogger(__name__)


class QueueTimeouts:
    """Measures from one scheduler process how long each synchronous run stays queued."""

    def __init__(self) -> None:
        self._queued = ChangeWatch()

    def fail_expired_runs(self) -> None:
        """Fail sync runs that were queued for their whole timeout: their callers no longer wait."""
        queued = list(queued_sync_runs())
        self._queued.start_round()
        for run in queued:
            if self._queued.unchanged_s(run.id, run.status) * 1000 >= run.timeout_ms:
                time_out_queued_run(run)
        self._queued.keep_only({run.id for run in queued})


def queued_sync_runs() -> QuerySet[Run]:
    """Return the sync runs that have not started."""
    queued = Run.objects.filter(ended_at__isnull=True, status=RunStatus.QUEUED, mode="sync")
    return queued.only("id", "status", "timeout_ms")


def time_out_queued_run(run: Run) -> None:
    """Fail a run that never started; does nothing if it has started in the meantime."""
    error = error_object(
        "RUN_TIMEOUT", f"The run waited in the queue for all of its {run.timeout_ms} ms."
    )
    actions = (
        []
        if run.holds_secrets
        else next_actions(error, template_id=run.template_id, inputs=run.inputs, again=True)
    )
    values = {"error": error, "result_summary": error["message"], "next_actions": actions}
    change = Transition(run, {"status": RunStatus.QUEUED}, values)
    data = {"errorCode": "RUN_TIMEOUT", "message": error["message"]}
    try:
        move(change, RunStatus.FAILED, actor="scheduler", data=data)
    except InvalidTransition:
        log.debug("the run started after all", extra={"runId": run.id})
