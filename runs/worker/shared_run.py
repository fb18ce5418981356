"""Executions of a shared run: by the worker that has the lease, and by its helpers.

Both read from the database which steps are left, under the lock of the run's row; otherwise they
work as `runs.execution.engine`.
"""

from __future__ import annotations

import logging
import queue
import time

from runs.execution.engine import Execution
from runs.execution.running_steps import Reason, Stopped, TimedOut
from runs.journal.writer import Ending
from runs.lifecycle.changes import StepChange
from runs.lifecycle.lease import Lease
from runs.models import RunStep
from runs.queue import work_sharing

POLL_S = 0.3  # between two reads of what other workers have done
log = logging.getLogger(__name__)


def create_execution(lease: Lease) -> Execution:
    """Return the execution for this worker's part in a run."""
    if lease.is_helper:
        return HelperExecution(lease)
    return SharedExecution(lease) if lease.run.shared else Execution(lease)


class SharedExecution(Execution):
    """The execution of a shared run under its lease: takes steps like a helper; ends the run."""

    def __init__(self, lease: Lease) -> None:
        super().__init__(lease)
        self.pending.clear()  # from here on only steps of its own that are tried again

    def _execute_run(self) -> None:
        if len(self.steps) > len(self.lease.started):
            work_sharing.notify_helpers(self.lease)
        super()._execute_run()

    def _fail_lost_steps(self) -> None:
        super()._fail_lost_steps()
        if self.lease.epoch > 1:
            work_sharing.reset_steps(self.lease)

    def _start_next(self) -> list[RunStep]:
        starting = self._take_next()
        while self._waits_for_helpers(starting):
            self._wait()
            starting = self._take_next()
        return starting

    def _waits_for_helpers(self, starting: list[RunStep]) -> bool:
        if starting or self.running or self.waits:
            return False
        return work_sharing.has_unfinished_steps(self.lease)

    def _take_next(self) -> list[RunStep]:
        with work_sharing.lock_run(self.lease):
            starting = super()._start_next()
            if self.unwritten or self.event_buffer.is_due:
                self._write([])  # at once: other workers read the journal
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
        with work_sharing.lock_run(self.lease):
            work_sharing.check_ownership(self.lease, [*self.unwritten, *changes])
            super()._write(changes, ending)

    def _wait(self) -> None:
        """Wait up to POLL_S while helpers still have steps of this run."""
        if time.monotonic() >= self._deadline:
            raise TimedOut
        try:
            item = self.inbox.get(timeout=POLL_S)
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
        """Read the steps that other workers wrote; unwritten and running steps are newer here."""
        ours = {change.index for change in self.unwritten} | set(self.running.indexes())
        for row in RunStep.objects.filter(run_id=self.run.id):
            if row.index not in ours:
                self.steps[row.index] = row


class HelperExecution(SharedExecution):
    """A helper's execution of another worker's run: takes steps until none is pending."""

    def _execute_run(self) -> None:
        try:
            self._work()
        except Stopped as stopped:
            self._stop(stopped.reason)
        except TimedOut:
            return  # the worker that has the lease ends the run

    def fail(self, error: Exception) -> None:
        """Log the unexpected exception; the run continues on the other workers."""
        log.error(
            "a helper failed with an unexpected exception",
            exc_info=error,
            extra={"runId": self.run.id},
        )

    def _start_next(self) -> list[RunStep]:
        return self._take_next()

    def _conclude(self) -> None:
        """Nothing is left for this worker; the worker that has the lease ends the run."""

    def _suspend(self) -> None:
        """Leave the suspension to the worker that has the lease: the step is pending again."""

    def _stop(self, reason: Reason) -> None:
        if reason == "draining" and (self.unwritten or self.event_buffer.events()):
            self._write([])

    def _release_slot(self) -> None:
        work_sharing.release_steps(self.lease.worker_id, self.run.id)
