"""The scheduler: rings again, ends lost leases, hides and expires. Any number of them at once is
safe.

Leases are judged by a counter and this process's own monotonic clock; wall clocks and their jumps
play no part.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import (
    DatabaseError,
    InterfaceError,
    close_old_connections,
    connection,
    transaction,
)
from django.db.models import QuerySet

from artifacts.services import collect_blobs, expire_artifacts, expire_artifacts_of
from artifacts.uploads import forget_uploads
from decisions.chat.answers import forget_answers
from decisions.chat.conversation import forget_conversations
from decisions.infra.batches import AT_ONCE, until_done
from decisions.infra.processes import is_gone
from decisions.infra.staleness import Watch
from runners.targets.snapshots import sweep_workspaces
from runs.conversations.maintenance import delete_old_tasks, end_takeovers
from runs.conversations.message_queue import start_waiting_runs
from runs.direct_calls.idempotency import delete_expired_keys
from runs.journal.outcome import error_object
from runs.lifecycle.changes import Transition
from runs.lifecycle.in_flight_calls import abort_stale_calls
from runs.lifecycle.slots import ensure_slots
from runs.lifecycle.status import InvalidTransition, move
from runs.models import TERMINAL, Run, RunKey, RunStatus, WebhookDelivery, Worker
from runs.queries.totals import fold_totals
from runs.queue import leases, outbox
from runs.sessions.services import delete_closed_sessions, expire_sessions
from runs.submission.resume import resume_settled_runs
from runs.submission.secret_inputs import delete_leftover_secrets
from runs.task_templates.outcomes import next_actions
from runs.worker import work_sharing

log = logging.getLogger(__name__)


class Scheduler:
    """One process's round of duties."""

    def __init__(self) -> None:
        self._beats, self._queued = Watch(), Watch()
        self.stopping = threading.Event()

    def run(self) -> None:
        """Do every duty at its interval until `stopping` is set; a database that is away is waited
        for.
        """
        duties: list[tuple[float, Callable[[], object]]] = [
            (1.0, outbox.resend_wakeups),
            (1.0, self.reap),
            (1.0, self.time_out_queued),
            (1.0, work_sharing.return_steps_of_lost_helpers),
            (1.0, resume_settled_runs),
            (1.0, fold_totals),
            (15.0, hide_runs),
            (15.0, expire_artifacts),
            (60.0, leases.free_stale_slots),
            (15.0, delete_leftover_secrets),
            (60.0, expire_sessions),
            (3600.0, delete_old_runs),
            (3600.0, delete_closed_sessions),
            (3600.0, collect_blobs),
            (3600.0, forget_uploads),
            (300.0, forget_answers),
            (300.0, delete_expired_keys),
            (3600.0, forget_conversations),
            (30.0, sweep_workspaces),
            (10.0, abort_stale_calls),
            (5.0, start_waiting_runs),
            (5.0, end_takeovers),
            (3600.0, delete_old_tasks),
        ]
        due = [0.0] * len(duties)
        while not self.stopping.is_set():
            for number, (interval_s, duty) in enumerate(duties):
                if time.monotonic() >= due[number]:
                    due[number] = time.monotonic() + interval_s
                    self._do(duty)
            self.stopping.wait(0.5)

    def _do(self, duty: Callable[[], object]) -> None:
        close_old_connections()
        try:
            duty()
        except (DatabaseError, InterfaceError, OSError) as error:
            log.warning("%s is put off: %s", getattr(duty, "__name__", "a duty"), error)
            connection.close()

    def reap(self) -> None:
        """End the leases of workers whose beat stands still, or whose process is known
        to be gone.
        """
        ensure_slots()
        workers = list(Worker.objects.filter(lost_at__isnull=True))
        self._beats.look()
        for worker in workers:
            gone = is_gone(worker.process)
            still_s = self._beats.unchanged_s(worker.id, worker.beat)
            if gone or still_s >= settings.LEASE_LOST_S:
                reason = "process gone" if gone else f"no heartbeat for {still_s:.0f} s"
                runs = leases.end_leases_of_worker(worker.id, beat=worker.beat, reason=reason)
                log.warning(
                    "a worker was lost",
                    extra={"workerId": worker.id, "reason": reason, "runs": runs},
                )
        self._beats.keep_only({worker.id for worker in workers})
        if strays := leases.end_stray_leases():
            log.warning("runs were leased to workers given up before", extra={"runs": strays})

    def time_out_queued(self) -> None:
        """Fail sync runs that were queued for longer than their whole time: nobody waits for them
        any more.
        """
        queued = list(queued_sync_runs())
        self._queued.look()
        for run in queued:
            if self._queued.unchanged_s(run.id, run.status) * 1000 >= run.timeout_ms:
                time_out_queued_run(run)
        self._queued.keep_only({run.id for run in queued})


def queued_sync_runs() -> QuerySet[Run]:
    """Return the runs that somebody waits for and that have not begun."""
    queued = Run.objects.filter(ended_at__isnull=True, status=RunStatus.QUEUED, mode="sync")
    return queued.only("id", "status", "timeout_ms")


def time_out_queued_run(run: Run) -> None:
    """Fail a run that never started, unless somebody was first."""
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
    told = {"errorCode": "RUN_TIMEOUT", "message": error["message"]}
    try:
        move(change, RunStatus.FAILED, actor="scheduler", data=told)
    except InvalidTransition:
        log.debug("the run started after all", extra={"runId": run.id})


def hide_runs() -> int:
    """Take runs past their runTtl out of the API's sight, and out of its totals; the admin keeps
    them for RUN_RETENTION_DAYS.
    """
    now = datetime.now(UTC)
    over = now - timedelta(milliseconds=settings.RUN_TTL_MS)
    due = Run.objects.filter(ended_at__lte=over, hidden_at__isnull=True)

    def hide_some() -> int:
        ids = list(due.order_by("ended_at").values_list("id", flat=True)[:AT_ONCE])
        return due.filter(id__in=ids).update(hidden_at=now)

    return until_done(hide_some, full=AT_ONCE)


def delete_old_runs() -> int:
    """Delete runs past their retention with their steps, events and keys; audit rows and tombstones
    of artifacts stay.
    """
    over = datetime.now(UTC) - timedelta(days=settings.RUN_RETENTION_DAYS)
    old = Run.objects.filter(ended_at__lte=over, hidden_at__isnull=False, status__in=TERMINAL)

    def delete_some() -> int:
        ids = list(old.order_by("ended_at").values_list("id", flat=True)[:AT_ONCE])
        with transaction.atomic():
            expire_artifacts_of(ids)
            RunKey.objects.filter(run_id__in=ids).delete()
            Run.objects.filter(id__in=ids).delete()
        return len(ids)

    hide_runs()
    Worker.objects.filter(lost_at__lte=over).delete()
    WebhookDelivery.objects.filter(run__isnull=True, created_at__lte=over).delete()
    return until_done(delete_some, full=AT_ONCE)
