"""The engine: executes a claimed run from its first pending step to its end.

A run has one thread, which makes all its database calls, and any number of step coroutines on the
process's event loop. The coroutines and other threads send the run's thread what happens through an
inbox: events, function calls, ended steps, and a reason to stop.
"""

from __future__ import annotations

import logging
import queue
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from decisions.foundation.errors import SessionNotFound
from decisions.foundation.infra.clock import now_ms
from decisions.foundation.security.logs import hiding
from runners import metrics
from runners.browser.pool.adaptive import AdaptiveConcurrency
from runners.paired_browser.choice import SELECTED
from runners.tools.base import Effect
from runs.calls.step_start import FirstCall, start_first_call
from runs.execution.event_buffer import EventBuffer, stored_bytes
from runs.execution.left_tabs import close_left_tabs
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
from runs.execution.suspension import suspend
from runs.failpoints import hit
from runs.journal import step_records, writer
from runs.journal.interruptions import NeedsAnswer, NeedsPerson, TakenOver
from runs.journal.outcome import (
    ending_of,
    fail_with_internal_error,
    failed_ending,
    in_session_of,
    timeout_error,
    unfinished_ending,
)
from runs.journal.reader import remaining_ms
from runs.journal.writer import Ending
from runs.lifecycle.changes import NewEvent, StepChange
from runs.lifecycle.lease import Lease, LeaseLost
from runs.lifecycle.step_rows import new_row
from runs.models import RunStep, StepStatus
from runs.queue import leases
from runs.queue.slots import release_slot
from runs.task_templates.base import StepView
from runs.task_templates.registry import get_template

ONCE_GRACE_S = 4.0  # a draining worker lets `once` steps finish for this long
log = logging.getLogger(__name__)


class Execution:
    """The execution of one run under one lease."""

    def __init__(self, lease: Lease) -> None:
        template = get_template(lease.run.template_id)
        if template is None:
            raise LookupError(
                f"the template {lease.run.template_id} is not installed on this worker"
            )
        self.lease, self.run, self.template = lease, lease.run, template
        self.inputs: Mapping[str, Any] = lease.run.inputs
        self.inbox: Inbox = queue.SimpleQueue()
        self.resources = RunResources(lease)
        self.running = RunningSteps(lease.run, template, self.inbox, self.resources)
        self.steps = {row.index: row for row in lease.steps}
        first = {change.index for change in lease.started}
        waiting = (row.index for row in lease.steps if row.status == StepStatus.PENDING)
        self.pending = deque(index for index in waiting if index not in first)
        self.appended: dict[int, RunStep] = {}  # new steps without a row in the database
        self.first_calls: dict[int, FirstCall] = {}  # of the steps that are about to start
        self.collected: set[int] = set()  # lost steps that are launched to collect their result
        self.attempts: Counter[int] = Counter()  # under this lease: a lost worker costs no retry
        self.unwritten: list[StepChange] = []  # to be written before the run stops for any reason
        self.event_buffer = EventBuffer(
            self.resources.mask_event, lambda: stored_bytes(lease.run.id)
        )
        # The steps' waits for a person; the run is suspended for the first one.
        self.waits: list[NeedsPerson | NeedsAnswer] = []
        self.limiter = AdaptiveConcurrency(template.concurrency(lease.run.inputs))
        self.slot_is_free = self._ended_early = False
        self.slot_freed: Callable[[], None] = lambda: None
        self._start = time.monotonic()
        self._deadline = self._start + remaining_ms(lease.run) / 1000

    @property
    def active_ms(self) -> int:
        """The run's running time in milliseconds, that of earlier leases included."""
        return int(self.run.active_ms + (time.monotonic() - self._start) * 1000)

    def interrupt(self, reason: Reason) -> None:
        """Stop the run on this worker at its next checkpoint. Safe from any thread."""
        self.inbox.put(reason)
        if reason != "draining":  # even while the run's thread waits for the database
            self.running.interrupt()

    def execute(self) -> None:
        """Execute steps until the run has ended, is suspended, or its lease ended."""
        try:
            with hiding(self.resources.masker):
                self._execute_run()
        except LeaseLost:
            log.info("the lease of the run has ended", extra={"runId": self.run.id})
            self._ended_early = True
        finally:
            if self.slot_is_free and self.template.uses_browser:
                self.slot_freed()  # another run may start while the pages close
            try:
                self.running.close()
            finally:
                self._release_slot()
        if self._ended_early and self.template.closes_tabs:
            close_left_tabs(self.run)

    def _release_slot(self) -> None:
        if not self.slot_is_free:
            release_slot(self.run.id, epoch=self.lease.epoch)

    def _execute_run(self) -> None:
        try:
            if self.resources.session is not None:
                self.resources.session.load_state()
            self._fail_lost_steps()
            self._work()
        except SessionNotFound as missing:
            self._fail_all(step_records.stored_error(missing) | {"at": now_ms()})
        except Stopped as stopped:
            self._stop(stopped.reason)
        except TimedOut:
            self._time_out()

    def fail(self, error: Exception) -> None:
        """Fail the run because of an unexpected exception; writes the steps' unwritten changes."""
        left = self.unwritten, self.event_buffer.events()
        fail_with_internal_error(self.lease, error, active_ms=self.active_ms, left=left)

    def _fail_lost_steps(self) -> None:
        """Fail `once` steps that an earlier worker started but did not end: effect unknown. In a
        paired browser they are launched, to collect the result that it may have sent.
        """
        lost = step_records.lost_steps(self.steps.values(), self.lease.started)
        if lost and SELECTED in self.inputs:
            self.collected = {change.index for change in lost}
        elif lost:
            self._write(lost)

    def _work(self) -> None:
        started = {change.index for change in self.lease.started}
        starting = [self.steps[index] for index in sorted(started | self.collected)]
        while True:
            if starting:
                hit("step_started")
            for row in starting:
                self._launch(row)
            if self.running:
                self._process_inbox()
            hit("step_over")
            starting = self._start_next()
            if not starting and not self.running:
                self._suspend() if self.waits else self._conclude()
                return

    def _start_next(self) -> list[RunStep]:
        """Choose the steps to start and write them with the unwritten changes; return those that
        are not launched yet.
        """
        starting = self._choose_steps()
        early = [row for row in starting if self.template.starts_before_commit(row.input)]
        for row in early:
            self._launch(row)
        is_last = not starting and not self.running  # then the changes are written with the end
        if not is_last and (starting or self.unwritten or self.event_buffer.is_due):
            self._write([self._start_change(row) for row in starting])
        return [row for row in starting if row not in early]

    def _start_change(self, row: RunStep) -> StepChange:
        change = replace(step_records.started(row), new=self.appended.pop(row.index, None))
        is_new = row.paused is None
        planned = self.template.first_call(row.input, self.inputs) if is_new else None
        if planned is None:
            return change
        if planned.event is not None:
            type_, data = planned.event
            event = self.resources.mask_event(NewEvent(type_, {"step": row.index, **data}))
            change = replace(change, events=[*change.events, event])
        first = start_first_call(
            self.run, row, planned, self.template, self.resources.secret_masker
        )
        if first is None:
            return change
        self.first_calls[row.index] = first
        return replace(change, call_start=first.start)

    def _choose_steps(self) -> list[RunStep]:
        if not (self.pending or self.running or self.waits):
            self._append()
        if self.pending and time.monotonic() >= self._deadline:
            raise TimedOut  # no step starts that cannot end in time
        broken = any(row.status == StepStatus.FAILED for row in self.steps.values())
        if self.waits or (broken and self.template.stops_at_failed_step):
            return []
        if self.template.shares_page and self.pending and not self.running:
            reason = self.template.skip_reason(self.inputs, self._before(len(self.steps)))
            if reason:
                self.unwritten += [
                    step_records.skipped(self.steps[n], reason) for n in self.pending
                ]
                self.pending.clear()
        free = max(0, self.limiter.current() - len(self.running))
        chosen: list[RunStep] = []
        while self.pending and len(chosen) < free and not self._must_wait(chosen):
            chosen.append(self.steps[self.pending.popleft()])
        for row in chosen:
            row.attempts += 1
        return chosen

    def _append(self) -> None:
        plan = self.template.next_step(self.inputs, self._before(len(self.steps)))
        if plan is not None:
            row = new_row(self.run, len(self.steps), plan, self.resources.masker)
            self.steps[row.index] = self.appended[row.index] = row
            self.pending.append(row.index)
            self.run.total_steps += 1

    def _must_wait(self, chosen: list[RunStep]) -> bool:
        waits = self.template.last_step_waits and self.pending[0] == len(self.steps) - 1
        return waits and bool(chosen or self.running)

    def _before(self, index: int) -> list[StepView]:
        return [step_records.step_view(row) for n, row in sorted(self.steps.items()) if n < index]

    def _write(self, changes: list[StepChange], ending: Ending | None = None) -> None:
        changes = [*self.unwritten, *changes]
        active_ms, events = self.active_ms, self.event_buffer.events()
        ending = None if ending is None else self.running.ending(ending)
        writer.write(
            self.lease,
            changes,
            active_ms=active_ms,
            events=events,
            ending=ending,
            delete_secrets=self.resources.ends_use_of_secrets(changes),
        )
        self.unwritten = []
        self.event_buffer.clear()
        self.slot_is_free = ending is not None  # the end of a run frees its slot

    def _conclude(self) -> None:
        views = self._before(len(self.steps))
        conclusion = self.resources.mask_conclusion(self.template.conclude(self.inputs, views))
        actions = in_session_of(self.run, conclusion.next_actions)
        conclusion = replace(conclusion, next_actions=actions)
        ending = ending_of(conclusion, self.template.result_schema)
        hit("before_ending")
        self._write([], ending)
        hit("after_ending")

    def _suspend(self) -> None:
        """Suspend the run; hold its page first, before another worker can resume the run."""
        keeps_page = self.running.hold_page(self.lease.epoch + 1)
        suspend(
            self.lease,
            self.waits[0],
            (self.unwritten, self.event_buffer.events()),
            active_ms=self.active_ms,
            keeps_page=keeps_page,
            delete_secrets=self.resources.ends_use_of_secrets(self.unwritten),
        )
        self.unwritten, self.slot_is_free = [], True
        self.event_buffer.clear()

    # --- steps ----------------------------------------------------------------------------------

    def _launch(self, row: RunStep) -> None:
        self.attempts[row.index] += 1
        reads_earlier = self.template.shares_page or (
            self.template.last_step_waits and row.index == len(self.steps) - 1
        )
        earlier = self._before(row.index) if reads_earlier else []
        first = self.first_calls.pop(row.index, None)
        started = first if first is not None and first.start.is_written else None
        self.running.launch(
            row,
            run_deadline=self._deadline,
            earlier=earlier,
            first=started,
            is_lost=row.index in self.collected,
        )
        self.collected.discard(row.index)

    def _process_inbox(self) -> None:
        """Wait for an item in the inbox and process all that are there."""
        while not self.event_buffer.is_full and (item := self._receive()) is not None:
            self._process(item)

    def _process(self, item: StepEnded | DatabaseRequest | NewEvent | Reason) -> None:
        if isinstance(item, StepEnded):
            self.unwritten += self._end_step(item)
        elif isinstance(item, DatabaseRequest):
            item.execute()
        elif isinstance(item, NewEvent):
            self.event_buffer.add(item)
        else:
            raise Stopped(item)

    def _receive(self) -> StepEnded | DatabaseRequest | NewEvent | Reason | None:
        """Return the next item; None where there are changes to write and the inbox is empty."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimedOut
        wait = 0.0 if self.unwritten else min(left, self.event_buffer.due_in())
        try:
            return self.inbox.get(block=wait > 0, timeout=wait or None)
        except queue.Empty:
            if wait == left:
                raise TimedOut from None
            return None

    def _end_step(self, ended: StepEnded) -> list[StepChange]:
        seconds = self.running.remove(ended)
        if seconds is None:
            return []  # it was canceled in the meantime
        ran, mask, template_id = ended.attempt, self.resources.masker.value, self.run.template_id
        row, duration_ms = self.steps[ran.index], int(seconds * 1000)
        if (wait := step_records.wait_reason(ended.future)) is not None:
            self.waits.append(wait)
            taken_over = isinstance(wait, TakenOver)
            return [self.running.paused(row, ran, taken_over=taken_over)]
        self.limiter.record(seconds)
        error = mask(step_records.error_of(ended.future, self.run, ends_at=self._deadline))
        if error is None:
            metrics.step_ended(template_id, "succeeded", seconds)
            return [step_records.succeeded(row, mask(ended.future.result()), ran, duration_ms)]
        retries_left = self.attempts[ran.index] <= self.template.step_retries
        is_late = error["errorCode"] == "RUN_TIMEOUT" or time.monotonic() >= self._deadline
        if row.effect == Effect.ONCE or is_late or not (retries_left and error.get("retryable")):
            metrics.step_ended(template_id, "failed", seconds)
            return [step_records.failed(row, error, ran, duration_ms)]
        metrics.step_ended(template_id, "retried", seconds)
        self.pending.appendleft(ran.index)
        self.event_buffer.add(step_records.retrying(row, error))
        return []

    # --- timeouts and stops -----------------------------------------------------------------------

    def _time_out(self) -> None:
        done = sum(row.status == StepStatus.SUCCEEDED for row in self.steps.values())
        error = timeout_error(self.run.timeout_ms, done=done, total=len(self.steps))
        running = self.running.indexes()
        # With no step running, the one that timed out has ended and is not written yet.
        late = running or [change.index for change in self.unwritten if change.error is not None]
        if late:
            error["step"] = step_records.event_data(self.steps[late[0]])
        self.running.cancel(running)
        changes = [step_records.failed(self.steps[index], error) for index in running]
        before = self._before(len(self.steps))
        so_far = self.resources.mask_conclusion(self.template.conclude(self.inputs, before))
        self._write(changes, unfinished_ending(self.run, self.steps.values(), error, so_far))
        self._ended_early = True

    def _fail_all(self, error: Mapping[str, Any]) -> None:
        """Fail a run that cannot start, with the steps that started with its claim."""
        started = [self.steps[change.index] for change in self.lease.started]
        self._write([step_records.failed(row, error) for row in started], failed_ending(error))

    def _stop(self, reason: Reason) -> None:
        hit(reason)
        if reason == "canceled":
            self._ended_early = True
            return
        if reason == "draining":
            self._end_steps()
        self.unwritten = [step_records.without_pause(change) for change in self.unwritten]
        if self.unwritten or self.event_buffer.events():
            self._write([])
        if reason == "draining":
            self.resources.hand_over()
        # Also where the reason is "lost": a worker without a heartbeat may still have the lease.
        leases.release_lease(self.lease, reason=reason, active_ms=self.active_ms)

    def _end_steps(self) -> None:
        """Interrupt steps that can be repeated; give `once` steps ONCE_GRACE_S to end."""
        running = self.running.indexes()
        self.running.cancel([n for n in running if self.steps[n].effect != Effect.ONCE])
        until = time.monotonic() + ONCE_GRACE_S
        while self.running and time.monotonic() < until:
            try:
                item = self.inbox.get(timeout=max(0.01, until - time.monotonic()))
            except queue.Empty:
                return
            if not isinstance(item, str):
                self._process(item)
