"""The running steps of a run: coroutines on the event loop's thread, and their browser session.

They send events, requests and their end to the run's inbox, which the engine reads on the run's own
thread.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from decisions.foundation.errors import Refused
from decisions.identity.principals import as_trust
from runners.browser.pool.runtime import get_runtime
from runners.browser.session.session import OpenBrowserSession
from runners.errors import ToolFailed, ToolTimeout
from runners.invocation.event_loop import get_loop
from runners.paired_browser.choice import SELECTED
from runners.tools.base import Effect
from runners.tools.registry import is_workspace_tool
from runs.calls.attempt import StepAttempt
from runs.calls.step_start import FirstCall
from runs.events.types import EventType
from runs.execution.failure_capture import (
    add_evidence,
    mark_refusal_reported,
    start_trace_if_required,
)
from runs.execution.page_recovery import restore_page
from runs.execution.resources import RunResources
from runs.execution.step_context import StepRun
from runs.journal import step_records
from runs.journal.interruptions import CallFailed
from runs.journal.step_records import event_data
from runs.journal.writer import Ending
from runs.lifecycle.changes import NewEvent, StepChange
from runs.live.open_pages import register_page
from runs.models import Run, RunStep, Task
from runs.sessions.held_pages import HeldPage, can_hold_page, hold_page, take_held_page
from runs.task_templates.base import StepPlan, StepView, TaskTemplate

Reason = Literal["canceled", "lost", "draining"]
PROGRESS_EVERY_S = 5.0  # between two step.progress events of a long step
CLOSE_S = 5.0  # a browser session that takes longer ends with the browser
log = logging.getLogger(__name__)


class Stopped(Exception):
    """The run must stop on this worker: it was canceled, its lease ended, or the worker drains."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


class TimedOut(Exception):
    """The run's timeout expired."""


@dataclass(frozen=True, slots=True)
class StepEnded:
    """An attempt of a step has ended; the future has its output or its exception."""

    attempt: StepAttempt
    future: Future[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class DatabaseRequest:
    """A function that the event loop's thread needs called on the run's thread, which has the
    database connection.
    """

    function: Callable[[], Any]
    result: Future[Any]

    def execute(self) -> None:
        """Call the function. A tool's failure or a refusal is the step's; any other exception is
        raised here too, and fails the run.
        """
        if not self.result.set_running_or_notify_cancel():
            return
        try:
            self.result.set_result(self.function())
        except (ToolFailed, Refused) as failed:
            self.result.set_exception(failed)
        except Exception as error:
            self.result.set_exception(error)
            raise


Inbox = queue.SimpleQueue[StepEnded | DatabaseRequest | NewEvent | Reason]


@contextmanager
def _progress_events(attempt: StepAttempt, data: Mapping[str, Any]) -> Iterator[None]:
    """Send step.progress every PROGRESS_EVERY_S while a step runs."""
    began, loop = time.monotonic(), asyncio.get_running_loop()
    timer = loop.call_later(PROGRESS_EVERY_S, lambda: send())  # most steps end sooner

    def send() -> None:
        nonlocal timer
        elapsed_ms = int((time.monotonic() - began) * 1000)
        attempt.add_event(NewEvent(EventType.STEP_PROGRESS, {**data, "elapsedMs": elapsed_ms}))
        timer = loop.call_later(PROGRESS_EVERY_S, send)

    try:
        yield
    finally:
        timer.cancel()


class RunningSteps:
    """Starts and interrupts the steps of one lease of a run; used on the run's thread only."""

    def __init__(
        self, run: Run, template: TaskTemplate, inbox: Inbox, resources: RunResources
    ) -> None:
        self._run, self._template, self._inbox = run, template, inbox
        self._resources = resources
        self._active: dict[int, Future[Mapping[str, Any]]] = {}
        self._began: dict[int, float] = {}
        self._session: OpenBrowserSession | None = None
        self._opening = asyncio.Lock()  # used on the event loop's thread only
        # The session that the steps used, named or not.
        self._last: OpenBrowserSession | None = None
        self._since = time.monotonic()

    def __len__(self) -> int:
        return len(self._active)

    def indexes(self) -> list[int]:
        """Return the indexes of the running steps, in order."""
        return sorted(self._active)

    def launch(
        self,
        row: RunStep,
        *,
        run_deadline: float,
        earlier: Sequence[StepView] = (),
        first: FirstCall | None = None,
        is_lost: bool = False,
    ) -> None:
        """Start a step on the event loop's thread.

        Args:
            run_deadline: in `time.monotonic()` seconds.
            first: the call that was recorded with the step's start.
            is_lost: an earlier worker was lost during this `once` step.
        """
        limit = time.monotonic() + self._template.step_limit_ms(row.input) / 1000
        paused = row.paused or {}
        # After a takeover the page may be closed: the step then continues without it.
        had_page = bool(paused.get("hadPage")) and not paused.get("takenOver")
        attempt = StepAttempt(
            run=self._run,
            index=row.index,
            on_run_thread=self._call_on_run_thread,
            add_event=self._inbox.put,
            deadline=min(run_deadline, limit),
            earlier=earlier,
            replay=paused.get("calls"),
            had_page=had_page,
            number=row.attempts,
            first=first,
            effect=Effect(row.effect),
            is_lost_call=is_lost,
            **self._resources.values_of(row.index),
        )
        plan = StepPlan(row.name, row.input, Effect(row.effect))
        self._began[row.index] = time.monotonic()
        future = get_loop().submit(self._do(plan, attempt, event_data(row)))
        self._active[row.index] = future
        future.add_done_callback(lambda done: self._inbox.put(StepEnded(attempt, done)))

    def remove(self, ended: StepEnded) -> float | None:
        """Remove a step that has ended and return its seconds; None where it was canceled."""
        index = ended.attempt.index
        if self._active.get(index) is not ended.future:
            return None
        del self._active[index]
        return time.monotonic() - self._began[index]

    def cancel(self, indexes: list[int]) -> None:
        """Interrupt steps and remove them; their end is ignored."""
        for index in indexes:
            future = self._active.pop(index, None)
            if future is not None:
                future.cancel()

    def interrupt(self) -> None:
        """Interrupt every step; each still sends its end. Safe from any thread."""
        for future in list(self._active.values()):
            future.cancel()

    def ending(self, ending: Ending) -> Ending:
        """Return the ending of the run with the warnings of its session."""
        ending = self._resources.ending(ending)
        if self._last is None or self._last.trust == "local":
            return ending
        late = get_loop().run(self._late_refusals(self._last), CLOSE_S) or []
        return replace(ending, warnings=[*ending.warnings, *late])

    async def _late_refusals(self, session: OpenBrowserSession) -> list[str]:
        return session.late_refusals(self._since)

    def close(self) -> None:
        """Interrupt every step and close the run's own session, for at most CLOSE_S. A named
        session is saved and stays open.
        """
        self.cancel(list(self._active))
        if not self._template.uses_browser:
            return
        named = self._resources.session
        if named is not None:
            named.save()
            named.check_in()
            return
        task_id = self._run.task_id  # during a takeover the page outlives the run
        keeps_page = (
            self._session is not None
            and task_id is not None
            and Task.objects.is_taken_over(task_id)
        )
        closing = get_loop().submit(self._close(keeps_page=keeps_page))
        try:
            closing.result(timeout=CLOSE_S)
        except (TimeoutError, CancelledError):
            log.warning("a browser session did not close in time", extra={"runId": self._run.id})

    def paused(self, row: RunStep, attempt: StepAttempt, *, taken_over: bool) -> StepChange:
        """Return the change of a step that waits for a person, and whether it had a page open."""
        session = attempt.browser
        had_page = self._template.shares_page and session is not None and session.has_page
        return step_records.paused(row, attempt, had_page=had_page, taken_over=taken_over)

    def hold_page(self, epoch: int) -> bool:
        """Hold the page that the steps share open until the run resumes under an epoch after this
        one; False where there is no page, or no room to hold it.
        """
        if not self._template.shares_page:
            return False
        if self._resources.session is not None:
            self._resources.session.save()
        return get_loop().run(self._hold_page(epoch), CLOSE_S) or False

    async def _hold_page(self, epoch: int) -> bool:
        async with self._opening:
            named, session = self._resources.session, self._session
            if not can_hold_page():
                log.warning(
                    "too many pages are held for suspended runs: this one is closed",
                    extra={"runId": self._run.id},
                )
                return False
            checkout = named.detach_checkout() if named is not None else None
            session = checkout.session if checkout is not None else session
            if session is None:
                return False
            self._session = None
            hold_page(self._run.id, HeldPage(epoch, session, self._run.session_id, checkout))
            return session.has_page

    def _call_on_run_thread(self, function: Callable[[], Any]) -> Future[Any]:
        result: Future[Any] = Future()
        self._inbox.put(DatabaseRequest(function, result))
        return result

    async def _do(
        self, plan: StepPlan, attempt: StepAttempt, data: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        try:
            with _progress_events(attempt, data):
                async with asyncio.timeout(attempt.seconds_left()):
                    if self._needs_browser(plan):
                        attempt.browser = await self._browser()
                        await start_trace_if_required(self._template, plan, attempt)
                    if self._template.shares_page:
                        await restore_page(self._template, plan, attempt)
                    return await self._template.do_step(plan, StepRun(attempt))
        except TimeoutError:
            details = {"effect": "unknown"} if plan.effect == Effect.ONCE else {}
            raise ToolTimeout(
                f"'{plan.name}' did not end within its timeout.", details=details
            ) from None
        except (CallFailed, ToolFailed) as failure:
            mark_refusal_reported(failure, attempt)
            await add_evidence(failure, self._template, plan, attempt)
            raise

    def _needs_browser(self, plan: StepPlan) -> bool:
        """Return whether a step uses a browser of this worker. In a paired browser only the
        tools that are no browser actions do.
        """
        if not self._template.needs_browser(plan.input):
            return False
        return SELECTED not in self._run.inputs or is_workspace_tool(plan.input.get("tool", ""))

    async def _browser(self) -> OpenBrowserSession:
        async with self._opening:
            named = self._resources.session
            if named is not None:
                self._last = await named.open()
                return self._registered(self._last)
            if self._session is None and (held := take_held_page(self._run.id)) is not None:
                self._last = self._session = held.session
            if self._session is None:
                self._session = await get_runtime().open_session(
                    run_id=self._run.id, trust=as_trust(self._run.trust)
                )
                self._last = self._session
            return self._registered(self._session)

    def _registered(self, session: OpenBrowserSession) -> OpenBrowserSession:
        """Show this session's page to viewers of the run's task."""
        if self._run.task_id is not None:
            register_page(self._run.task_id, self._run.id, session)
        return session

    async def _close(self, *, keeps_page: bool) -> None:
        async with self._opening:
            session, self._session = self._session, None
        if session is not None and keeps_page and session.has_page and can_hold_page():
            hold_page(self._run.id, HeldPage(self._run.epoch, session))
        elif session is not None:
            await session.close()
