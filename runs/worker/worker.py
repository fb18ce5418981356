"""A worker's place: its row and beat, the runs it holds, and what ends them from outside
(mechanisms 5-7).

Threads beside Celery's: the heartbeat (own connection; stops when the loop misses a ping), the
watcher (asks every half second whether this worker still may go on with its runs), one that looks
after sessions that are open between runs, and the loop that all tool I/O lives on.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from django.conf import settings
from django.db import (
    Error,
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
)
from django.db.models import F

from decisions.infra.ids import new_id
from decisions.infra.processes import is_gone, this_process
from runners import metrics
from runners.browser.pool.pooled_sessions import get_session_pool
from runners.browser.pool.runtime import count_open_pages
from runners.invocation.event_loop import get_loop
from runs.execution.engine import Execution
from runs.execution.running_steps import Reason
from runs.failpoints import hit
from runs.installation.health.publisher import Gauges, Publisher
from runs.journal.claimed_steps import read_claimed_steps
from runs.journal.outcome import fail_with_internal_error
from runs.journal.writer import save_active_ms
from runs.lifecycle.slots import ensure_slots
from runs.live import broadcaster
from runs.models import Run, RunStatus, Worker
from runs.queue import lease_expiry, leases
from runs.queue.dispatch_order import next_run
from runs.queue.eligibility import serves_some_only
from runs.queue.leases import Lease, LeaseLost
from runs.queue.redispatch import Redispatcher
from runs.sessions import held_pages, pooled
from runs.worker import work_sharing
from runs.worker.shared_run import create_execution

WATCH_S = 0.5
PING_S = 5.0
log = logging.getLogger(__name__)
_AWAY = (OperationalError, InterfaceError)  # the database is away, not wrong


class WorkerProcess:
    """One per worker process."""

    def __init__(
        self,
        worker_id: str | None = None,
        renamed: Callable[[str], None] = lambda worker_id: None,
    ) -> None:
        """Make the place.

        Args:
            renamed: is told the worker's new name, whose bells it has to hear from then on.
        """
        self._renamed = renamed
        self.worker_id = worker_id or new_id("wrk_")
        self._lock = threading.Lock()
        # One thread at a time looks whose turn it is: several would all find the same run.
        self._claiming = threading.Lock()
        self._helping = threading.Lock()
        self._active: set[Execution] = set()
        self._orphans: list[tuple[Lease, int]] = []  # runs to hand back once the database answers
        self._stopping = threading.Event()
        self._redispatcher = Redispatcher(lambda: self.worker_id)
        self._publisher = Publisher(lambda: (self.worker_id, self._now()))
        self.draining = False
        self._opened = False
        self._doorbell_heard = self._last_beat = time.monotonic()

    # --- coming and going -----------------------------------------------------------------------

    def open(self) -> None:
        """Register, take over from dead workers of this machine, start the heartbeat and the
        watcher; once.
        """
        with self._lock:
            if not self._opened:
                self._open()
                self._opened = True

    def _open(self) -> None:
        ensure_slots()
        self._register(self.worker_id)
        self._last_beat = time.monotonic()
        for other in Worker.objects.filter(lost_at__isnull=True).exclude(id=self.worker_id):
            if is_gone(other.process):
                lease_expiry.end_leases_of_worker(other.id, beat=other.beat, reason="process gone")
        for target in (self._heartbeat, self._watch, self._give_up, self._look_after_sessions):
            threading.Thread(target=target, name=target.__name__, daemon=True).start()
        self._publisher.start()

    def _now(self) -> Gauges:
        """What /metrics tells of this worker as it is now (config.metrics.NOW)."""
        return {
            "browser_pages": count_open_pages(),
            "browser_sessions": len(get_session_pool()),
            "waiting_pages": held_pages.count_held_pages(),
        }

    def _register(self, worker_id: str) -> None:
        Worker.objects.create(
            id=worker_id,
            process=this_process(),
            host=socket.gethostname(),
            started_at=datetime.now(UTC),
        )

    def drain(self) -> None:
        """Hand every run back at its next checkpoint and take no more. Returns at once."""
        self.draining = True
        self._interrupt_all("draining")

    def close(self) -> None:
        """Say goodbye: nothing is held any more, so nobody has to wait for the lease to end."""
        self._stopping.set()
        self._redispatcher.close()
        self._publisher.stop()
        pooled.save_all(self.worker_id)
        row = Worker.objects.filter(id=self.worker_id, lost_at__isnull=True).first()
        if row is not None:
            lease_expiry.end_leases_of_worker(row.id, beat=row.beat, reason="shut down")

    # --- work -------------------------------------------------------------------------------------

    def work(self) -> int:
        """Claim and carry out runs until there is none for this worker; return how many it took."""
        self._doorbell_heard = time.monotonic()
        taken = 0
        # All slots are held here: each of those runs looks for the next one when it ends.
        while not self.draining and self._own_runs() < settings.MAX_CONCURRENT_RUNS:
            hit("before_claim")
            with self._claiming:
                lease = leases.claim_run(self.worker_id, read_claimed_steps)
            if lease is None:
                break
            hit("after_claim")
            taken += 1
            if lease.epoch == 1:
                waited = datetime.now(UTC) - lease.run.created_at
                metrics.run_claimed(lease.run.template_id, waited.total_seconds())
            self._carry_out(lease)
        if not taken and serves_some_only() and not self.draining:
            self._redispatcher.run_claimed()  # the bell may have been for work that others do
        self._help()
        return taken

    def _help(self) -> None:
        """Take steps of other workers' shared runs while this one has no run of its own."""
        if not self._helping.acquire(blocking=False):
            return
        try:
            while not self.draining and not self._active:
                share = work_sharing.find_shared_run(self.worker_id)
                if share is None:
                    return
                self._carry_out(share)
        finally:
            self._helping.release()

    def _carry_out(self, lease: Lease) -> None:
        execution: Execution | None = None
        try:
            execution = create_execution(lease)
            execution.slot_freed = self._redispatcher.run_claimed
            with self._holding(execution):
                execution.go()
        except _AWAY as error:
            log.warning("the database went away; the run is handed back: %s", error)
            self._leave(lease, execution)
        except Exception as error:  # noqa: BLE001  (the one place: log, fail the run, go on)
            self._fail(lease, execution, error)

    def _fail(self, lease: Lease, execution: Execution | None, error: Exception) -> None:
        try:
            if execution is None:
                fail_with_internal_error(lease, error, active_ms=lease.run.active_ms)
            else:
                execution.fail(error)
        except LeaseLost:
            log.info("the run was taken over meanwhile", extra={"runId": lease.run.id})
        except _AWAY:
            self._leave(lease, execution)

    def _leave(self, lease: Lease, execution: Execution | None) -> None:
        """Let the heartbeat hand the run back once the database answers again."""
        connection.close()
        active_ms = execution.active_ms if execution else lease.run.active_ms
        with self._lock:
            self._orphans.append((lease, active_ms))

    @contextmanager
    def _holding(self, execution: Execution) -> Iterator[None]:
        with self._lock:
            self._active.add(execution)
        if self.draining:
            execution.interrupt("draining")
        if not execution.lease.is_helper:
            self._redispatcher.run_claimed()
        try:
            yield
        finally:
            with self._lock:
                self._active.remove(execution)

    def _executions(self) -> list[Execution]:
        with self._lock:
            return list(self._active)

    def _own_runs(self) -> int:
        """Count the runs whose slots are held here; one that has ended closes its pages yet."""
        return sum(
            not execution.lease.is_helper and not execution.slot_is_free
            for execution in self._executions()
        )

    def _interrupt_all(self, reason: Reason) -> None:
        for execution in self._executions():
            execution.interrupt(reason)

    # --- the heartbeat ----------------------------------------------------------------------------

    def _heartbeat(self) -> None:
        while not self._stopping.wait(settings.LEASE_BEAT_S):
            try:
                if get_loop().ping(PING_S):
                    self._beat()
            except Error as error:
                log.warning("no heartbeat: %s", error)
                connection.close()
        connection.close()

    def _beat(self) -> None:
        close_old_connections()
        began = time.monotonic()  # others may count from the beat's commit, which comes later
        alive = Worker.objects.filter(id=self.worker_id, lost_at__isnull=True)
        is_given_up = not alive.update(beat=F("beat") + 1)
        self._last_beat = began
        if is_given_up:
            self._start_anew()
            return
        for execution in self._executions():
            save_active_ms(execution.lease, execution.active_ms)
        self._hand_back_orphans()

    def _start_anew(self) -> None:
        if self._stopping.is_set():
            return
        log.error("this worker was given up by the others; it starts anew under another name")
        worker_id = new_id("wrk_")
        self._register(worker_id)
        self.worker_id = worker_id
        self._renamed(worker_id)
        for execution in self._executions():
            if execution.lease.worker_id != worker_id:
                execution.interrupt("lost")

    def _hand_back_orphans(self) -> None:
        while self._orphans:
            lease, active_ms = self._orphans[0]
            if lease.is_helper:
                work_sharing.return_steps(lease.worker_id, lease.run.id)
            else:
                leases.release_lease(lease, reason="database was away", active_ms=active_ms)
            self._orphans.pop(0)

    def _give_up(self) -> None:
        """Stop our own runs before their lease ends; asks no database, which may hang."""
        while not self._stopping.wait(WATCH_S):
            if time.monotonic() - self._last_beat > settings.LEASE_GIVE_UP_S:
                log.error("no heartbeat for too long: this worker stops its own runs")
                self._interrupt_all("lost")
                self._last_beat = time.monotonic()

    # --- the watcher ------------------------------------------------------------------------------

    def _watch(self) -> None:
        self._keep_doing(self._check_leases, self._answer_silence)

    def _look_after_sessions(self) -> None:
        """Apart from the watcher, which must not wait for a page to tell its state."""
        self._keep_doing(
            lambda: pooled.close_unused_sessions(self.worker_id),
            lambda: held_pages.close_unneeded_pages(self.worker_id),
            broadcaster.ensure_broadcaster,
        )

    def _keep_doing(self, *audit_events: Callable[[], None]) -> None:
        while not self._stopping.wait(WATCH_S):
            try:
                for deed in audit_events:
                    deed()
            except Error as error:
                name = threading.current_thread().name
                log.warning("the database does not answer %s: %s", name, error)
                connection.close()
        connection.close()

    def _check_leases(self) -> None:
        """Ask in one statement which of our runs are still ours, and interrupt the others."""
        lease = self._executions()
        if not lease:
            return
        close_old_connections()
        rows = {
            row[0]: row[1:]
            for row in Run.objects.filter(
                id__in=[execution.run.id for execution in lease]
            ).values_list("id", "status", "epoch")
        }
        for execution in lease:
            status, epoch = rows.get(execution.run.id, ("canceled", -1))
            if status == RunStatus.CANCELED:
                execution.interrupt("canceled")
            elif epoch != execution.lease.epoch or (
                execution.lease.is_helper and status != RunStatus.RUNNING
            ):
                execution.interrupt("lost")

    def _answer_silence(self) -> None:
        """Take work that no doorbell announced: the broker may be away or have stopped delivering
        to us.
        """
        silent = time.monotonic() - self._doorbell_heard
        if silent < settings.SWEEP_AFTER_S * 1.5 or self.draining:
            return
        self._doorbell_heard = time.monotonic()
        close_old_connections()
        is_unheard = next_run(self.worker_id) is not None
        if is_unheard:
            log.warning("there is work, but no doorbell was heard: taking it without")
        if is_unheard or work_sharing.find_shared_run(self.worker_id) is not None:
            threading.Thread(target=self._work_unrung, name="unrung", daemon=True).start()

    def _work_unrung(self) -> None:
        try:
            self.work()
        finally:
            connection.close()
