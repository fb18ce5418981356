"""The engine's two parts in a shared run: the worker that has the lease, and those that help it.

Which steps are left is what the database says, under the lock of the run's row; beyond that both
work as `runs.execution.engine` does.
"""

from __future__ import annotations

import logging
import queue
import time

from runs.execution.engine import Execution
from runs.execution.running_steps import Reason, Stopped, TimedOut
from runs.journal.writer import Ending
from runs.lifecycle.changes import StepChange
from runs.models import RunStep
from runs.queue.leases import Lease
from runs.worker import work_sharing

LOOK_S = 0.3  # between two looks at what the others have done
log = logging.getLogger(__name__)


def create_execution(lease: Lease) -> Execution:
    """Return what carries out this worker's part in a run."""
    if lease.is_helper:
        return Helper(lease)
    return SharedExecution(lease) if lease.run.shared else Execution(lease)


class SharedExecution(Execution):
    """The lease of a shared run: takes steps as helpers do, and alone ends the run."""

    def __init__(self, lease: Lease) -> None:
        super().__init__(lease)
        self.pending.clear()  # from here on: only steps of its own that are tried once more

    def _execute_run(self) -> None:
        if len(self.steps) > len(self.lease.claimed.started):
            work_sharing.notify_helpers(self.lease)
        super()._execute_run()

    def _fail_lost_steps(self) -> None:
        super()._fail_lost_steps()
        if self.lease.epoch > 1:
            work_sharing.reset_steps(self.lease)

    def _start_next(self) -> list[RunStep]:
        starting = self._take_next()
        while self._waits_for_others(starting):
            self._look_again_soon()
            starting = self._take_next()
        return starting

    def _waits_for_others(self, starting: list[RunStep]) -> bool:
        if starting or self.running or self.waits:
            return False
        return work_sharing.has_unfinished_steps(self.lease)

    def _take_next(self) -> list[RunStep]:
        with work_sharing.locked(self.lease):
            starting = super()._start_next()
            if (
                self.unwritten or self.event_buffer.is_due
            ):  # others look at the journal, so nothing is held back
                self._write([])
        return starting

    def _choose_steps(self) -> list[RunStep]:
        if self.waits:
            return []
        starting = super()._choose_steps()
        if time.monotonic() >= self._deadline:
            raise TimedOut
        free = self.limiter.current() - len(self.running) - len(starting)
        for row in work_sharing.take_steps(self.lease, free):
            row.attempts += 1
            self.steps[row.index] = row
            starting.append(row)
        return starting

    def _write(self, changes: list[StepChange], ending: Ending | None = None) -> None:
        with work_sharing.locked(self.lease):
            work_sharing.check_ownership(self.lease, [*self.unwritten, *changes])
            super()._write(changes, ending)

    def _look_again_soon(self) -> None:
        """Others still have steps of this run: wait a moment for what they leave."""
        if time.monotonic() >= self._deadline:
            raise TimedOut
        try:
            item = self.inbox.get(timeout=LOOK_S)
        except queue.Empty:
            return
        self._process(item)

    def _conclude(self) -> None:
        self._reload()
        super()._conclude()

    def _time_out(self) -> None:
        self._reload()
        super()._time_out()

    def _reload(self) -> None:
        """Take over what the others have done; what is not written yet is newer here."""
        ours = {change.index for change in self.unwritten} | set(self.running.indexes())
        for row in RunStep.objects.filter(run_id=self.run.id):
            if row.index not in ours:
                self.steps[row.index] = row


class Helper(SharedExecution):
    """A part in another worker's run: a few steps at a time, until none is pending."""

    def _execute_run(self) -> None:
        try:
            self._work()
        except Stopped as stopped:
            self._stop(stopped.reason)
        except TimedOut:
            return  # the worker that has the lease says so, and ends the run

    def fail(self, error: Exception) -> None:
        """Leave the run to the others; the defect is the log's matter."""
        log.error("helping ended over a defect", exc_info=error, extra={"runId": self.run.id})

    def _start_next(self) -> list[RunStep]:
        return self._take_next()

    def _conclude(self) -> None:
        """Nothing is left for this worker; who has the lease ends the run."""

    def _suspend(self) -> None:
        """Leave it to who has the lease: the step is pending again, and stops there as well."""

    def _stop(self, reason: Reason) -> None:
        if reason == "draining" and (self.unwritten or self.event_buffer.events()):
            self._write([])

    def _release_slot(self) -> None:
        work_sharing.return_steps(self.lease.worker_id, self.run.id)
