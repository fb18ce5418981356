"""A worker's heartbeat, and the checks that stop runs whose lease it no longer has.

The heartbeat increments a counter in the worker's row every LEASE_BEAT_S. A scheduler that sees the
counter unchanged for LEASE_LOST_S ends all leases of the worker (`runs.queue.lease_expiry`); a
worker that could not write for LEASE_GIVE_UP_S, which is shorter, stops its runs by itself before.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol

from django.conf import settings
from django.db import Error, close_old_connections, connection
from django.db.models.functions import Now

from decisions.foundation.database.clock import database_time
from decisions.foundation.infra.ids import new_id
from decisions.foundation.infra.processes import mark_alive, process_identity
from decisions.foundation.infra.threads import RepeatingThread
from runners.invocation.event_loop import get_loop
from runs.journal.writer import save_active_ms
from runs.lifecycle.lease import Lease
from runs.models import Run, RunStatus, Worker
from runs.queue import lease_expiry, leases, work_sharing

CHECK_S = 0.5  # between two checks of this worker's leases
PING_S = 5.0  # an event loop that takes longer to answer gets no heartbeat
# One statement: it also counts the leases, of which one may have no thread that works under it.
_BEAT = """
    UPDATE runs_worker SET beat = beat + 1, beat_at = {now} WHERE id = %s AND lost_at IS NULL
    RETURNING (SELECT count(*) FROM runs_run
               WHERE lease_owner = runs_worker.id AND status = 'running')
"""
log = logging.getLogger(__name__)


class LeasedWork(Protocol):
    """What a worker does under a lease (`runs.execution.engine.Execution`)."""

    @property
    def lease(self) -> Lease:
        """The lease."""

    @property
    def active_ms(self) -> int:
        """The run's running time in milliseconds, that of earlier leases included."""

    def interrupt(self, reason: Literal["canceled", "lost"]) -> None:
        """Stop at the next checkpoint. Safe from any thread."""


@dataclass(frozen=True, slots=True)
class Unreleased:
    """A lease of this worker that no thread of it works under any more.

    Attributes:
        is_defect: neither the run's end nor its failure could be written, for another reason than
            an outage: it counts as a loss, so that the run is not tried for ever.
    """

    lease: Lease
    active_ms: int
    is_defect: bool


class Heartbeat:
    """The heartbeat of one worker process.

    Args:
        executions: returns the runs that this worker executes now.
        stopping: set when the worker closes; ends the threads.
        renamed: called with the worker's new id when it had been marked lost and registers anew.
    """

    def __init__(
        self,
        worker_id: str,
        *,
        executions: Callable[[], Sequence[LeasedWork]],
        stopping: threading.Event,
        renamed: Callable[[str], None],
    ) -> None:
        self.worker_id = worker_id
        self._executions, self._stopping, self._renamed = executions, stopping, renamed
        self._unreleased: list[Unreleased] = []
        self.leased = 0  # runs under a lease of this worker, as the last heartbeat read
        self._last_beat = time.monotonic()
        self._idle_beats = 0  # since the last run

    def register(self, worker_id: str) -> None:
        """Insert the worker's row."""
        self._last_beat = time.monotonic()
        of_process = {"process": process_identity(), "host": socket.gethostname()}
        Worker.objects.create(
            id=worker_id, started_at=datetime.now(UTC), beat_at=Now(), **of_process
        )

    def start(self) -> None:
        """Start the threads: the heartbeat with its own connection, and one without a database."""
        for check, name, every_s in (
            (self._beat_if_alive, "heartbeat", settings.LEASE_BEAT_S),
            (self._watch_age, "heartbeat-age", CHECK_S),
        ):
            RepeatingThread(check, name=name, every_s=every_s, stopping=self._stopping).start()

    def release_later(self, unreleased: Unreleased) -> None:
        """Release a lease with the next heartbeat that reaches the database."""
        self._unreleased.append(unreleased)

    def unreleased(self) -> set[tuple[str, int]]:
        """Return the runs, and their epochs, whose leases are to be released."""
        return {(one.lease.run.id, one.lease.epoch) for one in list(self._unreleased)}

    def beat(self) -> None:
        """Write one heartbeat, the clocks of the running runs and the releases that are due.

        Raises:
            django.db.Error: The database does not answer.
        """
        close_old_connections()
        began = time.monotonic()  # schedulers count from the commit, which comes later
        with connection.cursor() as cursor:
            cursor.execute(_BEAT.format(now=database_time()), [self.worker_id])
            row = cursor.fetchone()
        self._last_beat = began
        if row is None:
            self._register_anew()
            return
        self.leased = row[0]
        for execution in self._executions():
            save_active_ms(execution.lease, execution.active_ms)
        self._release_due()

    def check_leases(self) -> None:
        """Interrupt the runs that were canceled or whose lease has ended, by one query."""
        executions = self._executions()
        if not executions:
            return
        close_old_connections()
        runs = Run.objects.filter(id__in=[execution.lease.run.id for execution in executions])
        rows = {row[0]: row[1:] for row in runs.values_list("id", "status", "epoch")}
        for execution in executions:
            lease = execution.lease
            status, epoch = rows.get(execution.lease.run.id, ("canceled", -1))
            if status == RunStatus.CANCELED:
                execution.interrupt("canceled")
            elif epoch != lease.epoch or (lease.is_helper and status != RunStatus.RUNNING):
                execution.interrupt("lost")

    def _beat_if_alive(self) -> None:
        """Write a heartbeat if the event loop answers; without a run, half as often."""
        is_idle = not (self._executions() or self._unreleased)
        self._idle_beats = self._idle_beats + 1 if is_idle else 0
        if self._idle_beats % 2 == 0 and get_loop().ping(PING_S):
            mark_alive("worker")
            self.beat()

    def _watch_age(self) -> None:
        """Interrupt all runs before their leases expire; uses no database, which may hang."""
        if time.monotonic() - self._last_beat > settings.LEASE_GIVE_UP_S:
            log.error("no heartbeat for too long: this worker stops its own runs")
            for execution in self._executions():
                execution.interrupt("lost")
            self._last_beat = time.monotonic()

    def _register_anew(self) -> None:
        if self._stopping.is_set():
            return
        log.error("this worker was marked lost; it registers again under another id")
        worker_id = new_id("wrk_")
        self.register(worker_id)
        self.worker_id = worker_id
        self._renamed(worker_id)
        for execution in self._executions():
            if execution.lease.worker_id != worker_id:
                execution.interrupt("lost")

    def _release_due(self) -> None:
        """Release the leases of executions whose end was not written; one that cannot be released
        now is tried again with the next heartbeat, and stops no other.
        """
        for unreleased in list(self._unreleased):
            try:
                _release(unreleased)
            except Error as error:
                extra = {"runId": unreleased.lease.run.id}
                log.warning("a lease cannot be released now: %s", error, extra=extra)
            else:
                self._unreleased.remove(unreleased)


def _release(unreleased: Unreleased) -> None:
    lease = unreleased.lease
    if lease.is_helper:
        work_sharing.release_steps(lease.worker_id, lease.run.id)
    elif unreleased.is_defect:
        lease_expiry.end_broken_lease(lease)
    else:
        reason = "the database was unavailable"
        leases.release_lease(lease, reason=reason, active_ms=unreleased.active_ms)
