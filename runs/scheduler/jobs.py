"""The scheduler: maintenance jobs and their intervals. Any number of schedulers may run at once."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from django.db import (
    Error,
    close_old_connections,
    connection,
)

from artifacts.expiry import collect_blobs, expire_artifacts
from artifacts.uploads import delete_old_uploads
from decisions.chat.answers import delete_expired_answers
from decisions.chat.idle_conversations import delete_idle_conversations
from decisions.foundation.infra.processes import mark_alive
from runners.paired_browser.pairing.registry import delete_revoked_browsers
from runners.targets.snapshots import sweep_workspaces
from runs.calls.direct.idempotency import delete_expired_keys
from runs.conversations.maintenance import delete_old_tasks, end_takeovers
from runs.conversations.message_queue import start_waiting_runs
from runs.lifecycle.in_flight_calls import abort_stale_calls
from runs.queries.totals import fold_totals
from runs.queue import work_sharing
from runs.queue.lease_expiry import HeartbeatMonitor, free_stale_slots
from runs.queue.slots import ensure_slots
from runs.scheduler.queue_timeouts import QueueTimeouts
from runs.scheduler.retention import delete_old_runs, hide_runs
from runs.scheduler.subjects import fill_in_subjects
from runs.sessions.services import delete_closed_sessions, expire_sessions
from runs.statistics.folding import fold_statistics
from runs.statistics.periods import delete_old_statistics
from runs.statistics.sampling import EVERY_S, sample_load
from runs.submission.resume import resume_settled_runs
from runs.submission.secret_inputs import delete_leftover_secrets

log = logging.getLogger(__name__)


class Scheduler:
    """Runs every maintenance job at its interval, in one process."""

    def __init__(self) -> None:
        self._heartbeats, self._queue_timeouts = HeartbeatMonitor(), QueueTimeouts()
        self.stopping = threading.Event()

    def run(self) -> None:
        """Run the jobs until `stopping` is set. A job that fails stops no other job, and is tried
        again at its next interval.
        """
        jobs = self._jobs()
        due = [0.0] * len(jobs)
        while not self.stopping.is_set():
            mark_alive("scheduler")
            for number, (interval_s, job) in enumerate(jobs):
                if time.monotonic() >= due[number]:
                    due[number] = time.monotonic() + interval_s
                    self._run_job(job)
            self.stopping.wait(0.5)

    def _jobs(self) -> list[tuple[float, Callable[[], object]]]:
        """Return the jobs, each with its interval in seconds."""
        return [
            (2.0, self._heartbeats.end_expired_leases),
            (3.0, self._queue_timeouts.fail_expired_runs),
            (5.0, work_sharing.release_steps_of_lost_helpers),
            (3.0, resume_settled_runs),
            (5.0, fold_totals),
            (5.0, fold_statistics),
            (EVERY_S, sample_load),
            (15.0, ensure_slots),
            (15.0, fill_in_subjects),
            (15.0, hide_runs),
            (15.0, expire_artifacts),
            (60.0, free_stale_slots),
            (15.0, delete_leftover_secrets),
            (60.0, expire_sessions),
            (3600.0, delete_old_runs),
            (3600.0, delete_closed_sessions),
            (3600.0, delete_revoked_browsers),
            (3600.0, collect_blobs),
            (3600.0, delete_old_uploads),
            (300.0, delete_expired_answers),
            (300.0, delete_expired_keys),
            (3600.0, delete_idle_conversations),
            (30.0, sweep_workspaces),
            (10.0, abort_stale_calls),
            (5.0, start_waiting_runs),
            (5.0, end_takeovers),
            (3600.0, delete_old_tasks),
            (600.0, delete_old_statistics),
        ]

    def _run_job(self, job: Callable[[], object]) -> None:
        close_old_connections()
        try:
            job()
        except (Error, OSError) as error:
            log.warning("the job %s failed and is tried again later: %s", _name(job), error)
            connection.close()
        except Exception:  # a defect, or a row that cannot be read: the other jobs have to run
            log.exception("the job %s failed and is tried again later", _name(job))
            connection.close()


def _name(job: Callable[[], object]) -> str:
    return getattr(job, "__name__", "of unknown name")
