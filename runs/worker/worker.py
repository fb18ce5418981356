"""A worker process: claims runs, executes them, and keeps their leases.

Its threads: those that execute runs, each started by a wake-up or a poll; the heartbeat's two
(`runs.queue.heartbeat`); one that checks its leases; one that polls for runs, more often while
wake-ups cannot come; one that maintains browser sessions which are open between runs; and the event
loop, on which all tools do their I/O.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import ClassVar

from django.conf import settings
from django.db import Error, close_old_connections
from django.db.models.functions import Now

from decisions.foundation.database.faults import is_temporary
from decisions.foundation.infra.ids import new_id
from decisions.foundation.infra.processes import has_ended
from decisions.foundation.infra.threads import RepeatingThread
from runners import metrics
from runners.browser.pool.pooled_sessions import get_session_pool
from runners.browser.pool.runtime import count_open_pages
from runs.execution.engine import Execution
from runs.failpoints import hit
from runs.journal.outcome import fail_with_internal_error
from runs.lifecycle.lease import Lease, LeaseLost
from runs.live import broadcaster
from runs.models import Run, RunStatus, Worker
from runs.operations.health.publisher import Gauges, Publisher
from runs.queue import lease_expiry, leases, wakeups, work_sharing
from runs.queue.dispatch_order import next_run
from runs.queue.eligibility import serves_some_only
from runs.queue.heartbeat import CHECK_S, Heartbeat, Unreleased
from runs.queue.redispatch import Redispatcher
from runs.queue.slots import ensure_slots
from runs.sessions import held_pages, pooled
from runs.worker.shared_run import create_execution
from runs.worker.work_threads import WorkThreads

log = logging.getLogger(__name__)
POLL_ALONE_S = 1.0  # between two polls while no wake-up can come
CLAIM_WAIT_S = 0.5  # a claim takes milliseconds, unless the database hangs


class WorkerProcess:
    """The worker of this process; there is one.

    Args:
        renamed: called with the worker's new id, on whose queue it receives wake-ups from then on.
        receives_wakeups: returns whether wake-ups are received now.
    """

    of_this_process: ClassVar[WorkerProcess | None] = None  # since it was opened

    def __init__(
        self,
        worker_id: str | None = None,
        renamed: Callable[[str], None] = lambda worker_id: None,
        receives_wakeups: Callable[[], bool] = lambda: True,
    ) -> None:
        self._receives_wakeups = receives_wakeups
        # Two more than slots, to look for work while all slots are taken.
        self._threads = WorkThreads(settings.MAX_CONCURRENT_RUNS + 2, self._work)
        self._lock = threading.Lock()
        self._claiming = threading.Lock()  # threads that claim at once would all find the same run
        self._helping = threading.Lock()
        self._active: set[Execution] = set()
        self._claimed: set[tuple[str, int]] = set()  # runs, epochs: from claim to end
        self._claim_failed_at: float | None = None
        self._stopping = threading.Event()
        self.heartbeat = Heartbeat(
            worker_id or new_id("wrk_"),
            executions=self._executions,
            stopping=self._stopping,
            renamed=renamed,
        )
        self._redispatcher = Redispatcher(lambda: self.worker_id, self.look_for_work)
        self._publisher = Publisher(lambda: (self.worker_id, self._gauges()))
        self.draining = False
        self._opened = False
        self._woken_at = time.monotonic()

    @property
    def worker_id(self) -> str:
        """The worker's present id; it changes when the worker had been marked lost."""
        return self.heartbeat.worker_id

    # --- start and stop -------------------------------------------------------------------------

    def open(self) -> None:
        """Register the worker, end the leases of dead workers of this machine, and start the
        threads. Does nothing the second time.
        """
        with self._lock:
            if not self._opened:
                self._open()
                self._opened = True

    def _open(self) -> None:
        ensure_slots()
        self.heartbeat.register(self.worker_id)
        for other in Worker.objects.filter(lost_at__isnull=True).exclude(id=self.worker_id):
            if has_ended(other.process):
                lease_expiry.end_leases_of_worker(other.id, beat=other.beat, reason="process gone")
        self.heartbeat.start()
        for check, name in (  # lease checks must wait neither for Redis nor for a page
            (self._watch_leases, "leases"),
            (self._poll, "queue"),
            (self._maintain_sessions, "session-maintenance"),
        ):
            RepeatingThread(check, name=name, every_s=CHECK_S, stopping=self._stopping).start()
        self._publisher.start()
        WorkerProcess.of_this_process = self

    def _gauges(self) -> Gauges:
        """Return the values of this worker's gauges in /metrics (config.metrics.NOW)."""
        return {
            "browser_pages": count_open_pages(),
            "browser_sessions": len(get_session_pool()),
            "waiting_pages": held_pages.count_held_pages(),
        }

    def drain(self) -> None:
        """Claim no more runs and release each at its next checkpoint. Returns within a second."""
        self.draining = True
        # Else a claim in progress could take a run that this drain releases.
        if self._claiming.acquire(timeout=CLAIM_WAIT_S):
            self._claiming.release()
        for execution in self._executions():
            execution.interrupt("draining")

    def close(self) -> None:
        """Drain, stop the threads, and end the worker's leases, so that no run waits for their
        expiry.
        """
        self.drain()
        self._threads.close()
        self._stopping.set()
        self._redispatcher.close()
        self._publisher.stop()
        pooled.save_all(self.worker_id)
        row = Worker.objects.filter(id=self.worker_id, lost_at__isnull=True).first()
        if row is not None:
            lease_expiry.end_leases_of_worker(row.id, beat=row.beat, reason="shut down")
            Worker.objects.filter(id=row.id).update(stopped_at=Now())

    # --- work -------------------------------------------------------------------------------------

    def receive_wakeup(self, run_id: str) -> None:
        """Look for work on another thread; while draining, leave the wake-up to other workers."""
        wakeups.mark_received()
        if self.draining:
            wakeups.send(wakeups.SHARED_QUEUE, run_id)
        self.look_for_work()

    def look_for_work(self) -> None:
        """Let one more thread claim and execute runs, unless enough do. Returns at once."""
        if not self.draining:
            self._threads.wake()

    def _work(self) -> None:
        close_old_connections()
        try:
            self.work()
        except Error as error:
            log.warning("the database does not answer a thread that looks for runs: %s", error)
        except Exception:  # whatever it is: the next wake-up or poll looks again
            log.exception("a thread that looks for runs failed")

    def work(self) -> int:
        """Claim and execute runs until none is left for this worker; return how many it claimed."""
        self._woken_at = time.monotonic()
        claimed = 0
        # With every slot taken by this worker's own runs, each claims the next one when it ends.
        while not self.draining and self._count_own_runs() < settings.MAX_CONCURRENT_RUNS:
            hit("before_claim")
            lease = self._claim()
            if lease is None:
                break
            hit("after_claim")
            claimed += 1
            if lease.epoch == 1:
                waited = datetime.now(UTC) - lease.run.created_at
                metrics.run_claimed(lease.run.template_id, waited.total_seconds())
            try:
                self._execute(lease)
            finally:
                self._claimed.discard((lease.run.id, lease.epoch))
        if not claimed and serves_some_only() and not self.draining:
            self._redispatcher.run_claimed()  # the wake-up may be for a template served elsewhere
        self._help()
        return claimed

    def _claim(self) -> Lease | None:
        with self._claiming:
            if self.draining:  # since this thread waited for others to claim
                return None
            try:
                lease = leases.claim_run(self.worker_id)
            except Error as error:
                log.warning("no run is claimed, because of an error of the database: %s", error)
                self._claim_failed_at = time.monotonic()
                return None
            if lease is not None:
                self._claimed.add((lease.run.id, lease.epoch))
            return lease

    def _help(self) -> None:
        """Execute steps of other workers' shared runs while this worker has no run of its own."""
        if not self._helping.acquire(blocking=False):
            return
        try:
            while not self.draining and not self._active:
                lease = work_sharing.find_shared_run(self.worker_id)
                if lease is None:
                    return
                self._execute(lease)
        finally:
            self._helping.release()

    def _execute(self, lease: Lease) -> None:
        """Execute a run under a lease, which ends with it; or else with a later heartbeat."""
        execution: Execution | None = None
        is_over, is_defect = False, False
        try:
            execution = create_execution(lease)
            execution.slot_freed = self._redispatcher.run_claimed
            with self._registered(execution):
                execution.execute()
            is_over = True
        except Exception as error:  # noqa: BLE001  (the one place: log, fail the run, continue)
            if is_temporary(error):
                log.warning("the database is unavailable; the run is released later: %s", error)
            else:
                is_over, is_defect = _fail(lease, execution, error)
        finally:
            if not is_over:
                active_ms = execution.active_ms if execution else lease.run.active_ms
                self.heartbeat.release_later(Unreleased(lease, active_ms, is_defect))

    @contextmanager
    def _registered(self, execution: Execution) -> Iterator[None]:
        with self._lock:
            self._active.add(execution)
        if self.draining:
            execution.interrupt("draining")
        lease = execution.lease
        if not lease.is_helper and (lease.run.others_wait or serves_some_only()):
            self._redispatcher.run_claimed()
        try:
            yield
        finally:
            with self._lock:
                self._active.remove(execution)

    def _executions(self) -> list[Execution]:
        with self._lock:
            return list(self._active)

    def _count_own_runs(self) -> int:
        """Count the runs that hold a slot; one that has ended may still be closing its pages."""
        return sum(
            not execution.lease.is_helper and not execution.slot_is_free
            for execution in self._executions()
        )

    # --- periodic checks --------------------------------------------------------------------------

    def _watch_leases(self) -> None:
        self.heartbeat.check_leases()
        self._release_unanswered_claim()

    def _release_unanswered_claim(self) -> None:
        """Release the run of a claim that was committed although the connection broke before the
        answer: this worker does not execute it, and keeps its lease.

        The server may commit it some time after the connection broke.
        """
        if self.heartbeat.leased > len(self._claimed):
            self._claim_failed_at = time.monotonic()
        failed_at = self._claim_failed_at
        if failed_at is None:
            return
        with self._claiming:
            known = self._claimed | self.heartbeat.unreleased()
            for run in Run.objects.filter(lease_owner=self.worker_id, status=RunStatus.RUNNING):
                if (run.id, run.epoch) not in known:
                    lease = Lease(run, self.worker_id)
                    leases.release_unanswered(lease)
            if self._claim_failed_at == failed_at and (
                time.monotonic() - failed_at > settings.LEASE_LOST_S
            ):
                self._claim_failed_at = None

    def _maintain_sessions(self) -> None:
        pooled.close_unused_sessions(self.worker_id)
        held_pages.close_unneeded_pages(self.worker_id)
        broadcaster.ensure_broadcaster()

    def _poll(self) -> None:
        """Look for work when no wake-up came for POLL_S, or for POLL_ALONE_S while none can come:
        the broker is unavailable, takes no messages, or does not deliver to this worker.
        """
        if self.draining:
            return
        gets_wakeups = self._receives_wakeups() and wakeups.can_be_sent()
        wait_s = settings.POLL_S if gets_wakeups else min(POLL_ALONE_S, settings.POLL_S)
        if time.monotonic() - self._woken_at < wait_s:
            return
        self._woken_at = time.monotonic()
        close_old_connections()
        is_waiting = next_run(self.worker_id) is not None
        if is_waiting and gets_wakeups:
            log.info("a run waits and no wake-up arrived: claiming it without")
        if is_waiting or work_sharing.find_shared_run(self.worker_id) is not None:
            self.look_for_work()


def _fail(lease: Lease, execution: Execution | None, error: Exception) -> tuple[bool, bool]:
    """Fail a run because of an unexpected exception; return whether the run has ended or its lease
    is lost, and if not, whether that is due to a defect.
    """
    try:
        if execution is None:
            fail_with_internal_error(lease, error, active_ms=lease.run.active_ms)
        else:
            execution.fail(error)
    except LeaseLost:
        log.info("the lease of the run had ended", extra={"runId": lease.run.id})
    except Exception as second:
        log.exception("the run cannot be failed now", extra={"runId": lease.run.id})
        return False, not is_temporary(second)
    return True, False
