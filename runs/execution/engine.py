"""The engine: carries a claimed run from its first pending step to its end.

A run has one thread (this one, which alone touches the database for it) and any number of step
coroutines on the process's loop thread. They talk through an inbox: a step that is over, a question
to policy, a stop.
"""

from __future__ import annotations

import logging
import queue
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from decisions.errors import SessionNotFound
from decisions.infra.clock import now_ms
from decisions.security.logs import hiding
from runners import metrics
from runners.browser.pool.adaptive import AdaptiveConcurrency
from runners.tools.base import Effect
from runs.execution.event_buffer import EventBuffer, stored_bytes
from runs.execution.first_call import FirstCall, first_call, planned_call, start_events
from runs.execution.resources import RunResources
from runs.execution.running_steps import (
    DatabaseRequest,
    Inbox,
    Reason,
    RunningSteps,
    StepEnded,
    Stopped,
    TimedOut,
)
from runs.execution.suspension import pause
from runs.failpoints import hit
from runs.journal import step_records, writer
from runs.journal.claimed_steps import ms_left
from runs.journal.interruptions import NeedsAnswer, NeedsPerson, TakenOver
from runs.journal.outcome import (
    ending_of,
    fail_with_internal_error,
    failed,
    timed_out,
    timeout_error,
)
from runs.journal.writer import Ending
from runs.lifecycle.changes import NewEvent, StepChange
from runs.lifecycle.slots import release_slot
from runs.lifecycle.step_rows import new_row
from runs.models import RunStep, StepStatus
from runs.queue import leases
from runs.queue.leases import Lease, LeaseLost
from runs.task_templates.base import StepView
from runs.task_templates.registry import get_template

ONCE_GRACE_S = 4.0  # a step that must not be repeated may finish within this when the worker drains
log = logging.getLogger(__name__)


class Execution:
    """One lease of one run."""

    def __init__(self, lease: Lease) -> None:
        template = get_template(lease.run.template_id)
        if template is None:
            raise LookupError(f"the template {lease.run.template_id} is not installed here")
        self.lease, self.run, self.template = lease, lease.run, template
        self.inputs: Mapping[str, Any] = lease.run.inputs
        self.inbox: Inbox = queue.SimpleQueue()
        self.resources = RunResources(lease)
        self.running = RunningSteps(lease.run, template, self.inbox, self.resources)
        self.steps = {row.index: row for row in lease.claimed.steps}
        first = {change.index for change in lease.claimed.started}
        waiting = (row.index for row in lease.claimed.steps if row.status == StepStatus.PENDING)
        self.todo = deque(index for index in waiting if index not in first)
        self.appended: dict[int, RunStep] = {}  # steps that the run's row does not know yet
        self.first: dict[int, FirstCall] = {}  # calls that begin with the steps that start now
        self.tries: Counter[int] = Counter()  # of this lease: a lost worker costs no retry
        self.unwritten: list[StepChange] = []  # by the journal; whatever stops the run, it is
        self.told = EventBuffer(self.resources.event, lambda: stored_bytes(lease.run.id))
        # What stopped for a person; the first one is asked.
        self.asking: list[NeedsPerson | NeedsAnswer] = []
        self.limiter = AdaptiveConcurrency(template.concurrency(lease.run.inputs))
        self.slot_is_free = False
        self.slot_freed: Callable[[], None] = lambda: None
        self._start = time.monotonic()
        self._deadline = self._start + ms_left(lease.run) / 1000

    @property
    def active_ms(self) -> int:
        """The run's clock: what earlier leases used, and this one so far."""
        return int(self.run.active_ms + (time.monotonic() - self._start) * 1000)

    def interrupt(self, reason: Reason) -> None:
        """Take the run off this worker at its next checkpoint. Safe from any thread."""
        self.inbox.put(reason)
        if reason != "draining":  # at once, also while this run's thread waits for the database
            self.running.interrupt()

    def go(self) -> None:
        """Work until the run has ended or is not ours any more, whatever its steps did."""
        try:
            self._go()
        except LeaseLost:
            log.info("the run is not this worker's any more", extra={"runId": self.run.id})
        finally:
            if self.slot_is_free and self.template.uses_browser:
                self.slot_freed()  # another run need not wait until the pages are closed
            try:
                self.running.close()
            finally:
                self._leave()

    def _leave(self) -> None:
        if not self.slot_is_free:
            release_slot(self.run.id, epoch=self.lease.epoch)

    def _go(self) -> None:
        try:
            self.resources.take()
            with hiding(self.resources.masker):
                self._fail_lost_steps()
                self._work()
        except SessionNotFound as missing:
            self._fail_all(step_records.kept(missing) | {"at": now_ms()})
        except Stopped as stopped:
            self._stop(stopped.reason)
        except TimedOut:
            self._time_out()

    def fail(self, error: Exception) -> None:
        """End the run over a defect of ours, with what its steps left."""
        left = self.unwritten, self.told.events()
        fail_with_internal_error(self.lease, error, active_ms=self.active_ms, left=left)

    def _fail_lost_steps(self) -> None:
        """Fail `once` steps whose worker was lost under way: their effect is unknown."""
        if lost := step_records.lost(self.steps.values(), self.lease.claimed.started):
            self._write(lost)

    def _work(self) -> None:
        starting = [self.steps[change.index] for change in self.lease.claimed.started]
        while True:
            if starting:
                hit("step_started")
            for row in starting:
                self._launch(row)
            if self.running:
                self._listen()
            hit("step_over")
            starting = self._begin_next()
            if not starting and not self.running:
                self._pause() if self.asking else self._conclude()
                return

    def _begin_next(self) -> list[RunStep]:
        """Write what happened and which steps start now, together; return those of them that are
        still to be launched.
        """
        starting = self._choose()
        early = [row for row in starting if self.template.starts_before_commit(row.input)]
        for row in early:
            self._launch(row)
        is_over = not starting and not self.running  # then the end is written with it
        if not is_over and (starting or self.unwritten or self.told.is_due):
            self._write([self._started(row) for row in starting])
        return [row for row in starting if row not in early]

    def _started(self, row: RunStep) -> StepChange:
        line = replace(step_records.started(row), new=self.appended.pop(row.index, None))
        if (planned := planned_call(self.run, row, self.template)) is None:
            return line
        told = [self.resources.event(event) for event in start_events(row, planned)]
        line = replace(line, events=[*line.events, *told])
        first = first_call(self.run, row, planned, self.template, self.resources.masker)
        if first is None:
            return line
        self.first[row.index] = first
        return replace(line, opens=first.opening)

    def _choose(self) -> list[RunStep]:
        if not (self.todo or self.running or self.asking):
            self._append()
        if self.todo and time.monotonic() >= self._deadline:
            raise TimedOut  # no step begins that could not end
        broken = any(row.status == StepStatus.FAILED for row in self.steps.values())
        if self.asking or (broken and self.template.stops_at_failed_step):
            return []
        if self.template.shares_page and self.todo and not self.running:
            reason = self.template.skip_reason(self.inputs, self._before(len(self.steps)))
            if reason:
                self.unwritten += [step_records.skipped(self.steps[n], reason) for n in self.todo]
                self.todo.clear()
        free = max(0, self.limiter.current() - len(self.running))
        chosen: list[RunStep] = []
        while self.todo and len(chosen) < free and not self._must_wait(chosen):
            chosen.append(self.steps[self.todo.popleft()])
        for row in chosen:
            row.attempts += 1
        return chosen

    def _append(self) -> None:
        plan = self.template.next_step(self.inputs, self._before(len(self.steps)))
        if plan is not None:
            row = new_row(self.run, len(self.steps), plan)
            self.steps[row.index] = self.appended[row.index] = row
            self.todo.append(row.index)
            self.run.total_steps += 1

    def _must_wait(self, chosen: list[RunStep]) -> bool:
        waits = self.template.last_step_waits and self.todo[0] == len(self.steps) - 1
        return waits and bool(chosen or self.running)

    def _before(self, index: int) -> list[StepView]:
        return [step_records.view(row) for n, row in sorted(self.steps.items()) if n < index]

    def _write(self, changes: list[StepChange], ending: Ending | None = None) -> None:
        lines = [*self.unwritten, *changes]
        active_ms, events = self.active_ms, self.told.events()
        ending = None if ending is None else self.running.ending(ending)
        writer.write(
            self.lease,
            lines,
            active_ms=active_ms,
            events=events,
            ending=ending,
            delete_secrets=self.resources.spends_secrets(lines),
        )
        self.unwritten = []
        self.told.forget()
        self.slot_is_free = ending is not None  # the end of a run gives its slot back

    def _conclude(self) -> None:
        views = self._before(len(self.steps))
        ending = ending_of(self.template.conclude(self.inputs, views), self.template.result_schema)
        hit("before_ending")
        self._write([], ending)
        hit("after_ending")

    def _pause(self) -> None:
        """Leave the run waiting for a person; its page is kept before anybody can go on with it."""
        keeps_page = self.running.hold_page(self.lease.epoch + 1)
        left, spent = self.unwritten, self.resources.spends_secrets(self.unwritten)
        pause(
            self.lease,
            self.asking[0],
            (left, self.told.events()),
            active_ms=self.active_ms,
            keeps_page=keeps_page,
            delete_secrets=spent,
        )
        self.unwritten, self.slot_is_free = [], True
        self.told.forget()

    # --- steps ----------------------------------------------------------------------------------

    def _launch(self, row: RunStep) -> None:
        self.tries[row.index] += 1
        looks_back = self.template.shares_page or (
            self.template.last_step_waits and row.index == len(self.steps) - 1
        )
        earlier = self._before(row.index) if looks_back else []
        first = self.first.pop(row.index, None)
        began = first if first is not None and first.opening.is_written else None
        self.running.launch(row, run_deadline=self._deadline, earlier=earlier, first=began)

    def _listen(self) -> None:
        """Wait for news, take all there is, and note the journal lines that it makes."""
        while not self.told.are_many and (item := self._next()) is not None:
            self._take(item)

    def _take(self, item: StepEnded | DatabaseRequest | NewEvent | Reason) -> None:
        if isinstance(item, StepEnded):
            self.unwritten += self._over(item)
        elif isinstance(item, DatabaseRequest):
            item.reply()
        elif isinstance(item, NewEvent):
            self.told.add(item)
        else:
            raise Stopped(item)

    def _next(self) -> StepEnded | DatabaseRequest | NewEvent | Reason | None:
        """Return what comes next; None as soon as there is something to write and nothing new."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimedOut
        wait = 0.0 if self.unwritten else min(left, self.told.due_in())
        try:
            return self.inbox.get(block=wait > 0, timeout=wait or None)
        except queue.Empty:
            if wait == left:
                raise TimedOut from None
            return None

    def _over(self, over: StepEnded) -> list[StepChange]:
        seconds = self.running.end(over)
        if seconds is None:
            return []  # canceled meanwhile
        ran, mask, template_id = over.step_run, self.resources.masker.value, self.run.template_id
        row, duration_ms = self.steps[ran.index], int(seconds * 1000)
        if (asked := step_records.wait_reason(over.future)) is not None:
            self.asking.append(asked)
            taken_over = isinstance(asked, TakenOver)
            return [self.running.paused(row, ran, taken_over=taken_over)]
        self.limiter.record(seconds)
        error = mask(step_records.error_of(over.future, self.run, ends_at=self._deadline))
        if error is None:
            metrics.step_ended(template_id, "succeeded", seconds)
            return [step_records.succeeded(row, mask(over.future.result()), ran, duration_ms)]
        tries_left = self.tries[ran.index] <= self.template.step_retries
        is_late = error["errorCode"] == "RUN_TIMEOUT" or time.monotonic() >= self._deadline
        if row.effect == Effect.ONCE or is_late or not (tries_left and error.get("retryable")):
            metrics.step_ended(template_id, "failed", seconds)
            return [step_records.failed(row, error, ran, duration_ms)]
        metrics.step_ended(template_id, "retried", seconds)
        self.todo.appendleft(ran.index)
        self.told.add(step_records.retrying(row, error))
        return []

    # --- ends that the run did not choose ---------------------------------------------------------

    def _time_out(self) -> None:
        done = sum(row.status == StepStatus.SUCCEEDED for row in self.steps.values())
        error = timeout_error(self.run.timeout_ms, done=done, total=len(self.steps))
        running = self.running.indexes()  # or the step whose time was up said so already
        cut = running or [line.index for line in self.unwritten if line.error is not None]
        if cut:
            error["step"] = step_records.about(self.steps[cut[0]])
        self.running.cancel(running)
        changes = [step_records.failed(self.steps[index], error) for index in running]
        so_far = self.template.conclude(self.inputs, self._before(len(self.steps)))
        self._write(changes, timed_out(self.run, self.steps.values(), error, so_far))

    def _fail_all(self, error: Mapping[str, Any]) -> None:
        """End a run that cannot begin: what started with its claim failed, and so did all of it."""
        started = [self.steps[change.index] for change in self.lease.claimed.started]
        self._write([step_records.failed(row, error) for row in started], failed(error))

    def _stop(self, reason: Reason) -> None:
        hit(reason)
        if reason == "canceled":
            return
        if reason == "draining":
            self._end_steps()
        self.unwritten = [step_records.unasked(line) for line in self.unwritten]
        if self.unwritten or self.told.events():
            self._write([])
        if reason == "draining":
            self.resources.hand_over()
        # A worker that had no heartbeat for too long may still have the lease: nobody else ends it.
        leases.release_lease(self.lease, reason=reason, active_ms=self.active_ms)

    def _end_steps(self) -> None:
        """Interrupt what can be repeated; give the rest a moment and note what comes of it."""
        running = self.running.indexes()
        self.running.cancel([n for n in running if self.steps[n].effect != Effect.ONCE])
        until = time.monotonic() + ONCE_GRACE_S
        while self.running and time.monotonic() < until:
            try:
                item = self.inbox.get(timeout=max(0.01, until - time.monotonic()))
            except queue.Empty:
                return
            if not isinstance(item, str):
                self._take(item)
