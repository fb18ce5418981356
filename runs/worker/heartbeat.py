"""A worker's heartbeat, and the checks that stop runs whose lease it no longer has.

The heartbeat increments a counter in the worker's row every LEASE_BEAT_S. A scheduler that sees the
counter unchanged for LEASE_LOST_S ends all leases of the worker (`runs.journal.lease_expiry`); a
worker that could not write for LEASE_GIVE_UP_S, which is shorter, stops its runs by itself before.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from django.conf import settings
from django.db import Error, connection
from django.db.models import F

from decisions.infra.ids import new_id
from decisions.infra.processes import process_identity
from decisions.infra.threads import renew_connection
from runners.invocation.event_loop import get_loop
from runs.execution.engine import Execution
from runs.journal.writer import save_active_ms
from runs.models import Run, RunStatus, Worker
from runs.queue import leases
from runs.queue.leases import Lease
from runs.worker import work_sharing

CHECK_S = 0.5  # between two checks of this worker's leases
PING_S = 5.0  # an event loop that takes longer to answer gets no heartbeat
log = logging.getLogger(__name__)


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
        executions: Callable[[], list[Execution]],
        stopping: threading.Event,
        renamed: Callable[[str], None],
    ) -> None:
        self.worker_id = worker_id
        self._executions, self._stopping, self._renamed = executions, stopping, renamed
        self._unreleased: list[tuple[Lease, int]] = []
        self._last_beat = time.monotonic()

    def register(self, worker_id: str) -> None:
        """Insert the worker's row."""
        self._last_beat = time.monotonic()
        Worker.objects.create(
            id=worker_id,
            process=process_identity(),
            host=socket.gethostname(),
            started_at=datetime.now(UTC),
        )

    def start(self) -> None:
        """Start the threads: the heartbeat with its own connection, and one without a database."""
        for target, name in ((self._run, "heartbeat"), (self._watch_age, "heartbeat-age")):
            threading.Thread(target=target, name=name, daemon=True).start()

    def release_later(self, lease: Lease, active_ms: int) -> None:
        """Release a lease with the next heartbeat that reaches the database."""
        self._unreleased.append((lease, active_ms))

    def unreleased(self) -> set[tuple[str, int]]:
        """Return the runs, and their epochs, whose leases are to be released."""
        return {(lease.run.id, lease.epoch) for lease, _ in list(self._unreleased)}

    def beat(self) -> None:
        """Write one heartbeat, the clocks of the running runs and the releases that are due.

        Raises:
            django.db.Error: The database does not answer.
        """
        renew_connection()
        began = time.monotonic()  # schedulers count from the commit, which comes later
        row = Worker.objects.filter(id=self.worker_id, lost_at__isnull=True)
        is_lost = not row.update(beat=F("beat") + 1)
        self._last_beat = began
        if is_lost:
            self._register_anew()
            return
        for execution in self._executions():
            save_active_ms(execution.lease, execution.active_ms)
        self._release_due()

    def check_leases(self) -> None:
        """Interrupt the runs that were canceled or whose lease has ended, by one query."""
        executions = self._executions()
        if not executions:
            return
        renew_connection()
        runs = Run.objects.filter(id__in=[execution.run.id for execution in executions])
        rows = {row[0]: row[1:] for row in runs.values_list("id", "status", "epoch")}
        for execution in executions:
            lease = execution.lease
            status, epoch = rows.get(execution.run.id, ("canceled", -1))
            if status == RunStatus.CANCELED:
                execution.interrupt("canceled")
            elif epoch != lease.epoch or (lease.is_helper and status != RunStatus.RUNNING):
                execution.interrupt("lost")

    def _run(self) -> None:
        while not self._stopping.wait(settings.LEASE_BEAT_S):
            try:
                if get_loop().ping(PING_S):
                    self.beat()
            except Error as error:
                log.warning("no heartbeat: %s", error)
                connection.close()
            except Exception:  # whatever it is: without heartbeats the worker loses its runs
                log.exception("a heartbeat failed; the next one follows")
                connection.close()
        connection.close()

    def _watch_age(self) -> None:
        """Interrupt all runs before their leases expire; uses no database, which may hang."""
        while not self._stopping.wait(CHECK_S):
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
        while self._unreleased:
            lease, active_ms = self._unreleased[0]
            if lease.is_helper:
                work_sharing.release_steps(lease.worker_id, lease.run.id)
            else:
                leases.release_lease(lease, reason="database was away", active_ms=active_ms)
            self._unreleased.pop(0)
