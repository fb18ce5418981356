"""The steps of a run that are under way: coroutines on the loop thread, and the browser session
they share.

What they have to say comes back through the run's inbox, which the engine reads on the run's own
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

from runners.browser.pool.runtime import get_runtime
from runners.browser.session.session import BrowserSession
from runners.errors import ToolFailed, ToolTimeout
from runners.invocation.event_loop import get_loop
from runners.tools.base import Effect
from runners.trust import TrustLevel
from runs.events.types import EventType
from runs.execution.failure_capture import add_evidence, mark_refusal_reported, record_if_wanted
from runs.execution.first_call import FirstCall
from runs.execution.page_recovery import restore_page
from runs.execution.resources import RunResources
from runs.execution.step_context import StepRun
from runs.journal import step_records
from runs.journal.interruptions import CallFailed
from runs.journal.step_records import about
from runs.journal.writer import Ending
from runs.lifecycle.changes import NewEvent, StepChange
from runs.live.open_pages import register_page
from runs.models import Run, RunStep, Task
from runs.sessions.held_pages import HeldPage, can_hold_page, hold_page, take_held_page
from runs.task_templates.base import StepPlan, StepView, TaskTemplate

Reason = Literal["canceled", "lost", "draining"]
PROGRESS_EVERY_S = 5.0  # a step that takes longer says so this often
CLOSE_S = 5.0  # a browser session that takes longer to close is left to the browser's own end
log = logging.getLogger(__name__)


class Stopped(Exception):
    """Somebody took the run off this worker: a cancel, a lost lease, a shutdown."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


class TimedOut(Exception):
    """The run's own time is over."""


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A step's try is over; the future has its output or its exception."""

    step_run: StepRun
    future: Future[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class DatabaseRequest:
    """Something that the loop thread needs done on the run's database thread."""

    function: Callable[[], Any]
    answer: Future[Any]

    def reply(self) -> None:
        """Do it; what it raises is the asker's and the engine's."""
        if not self.answer.set_running_or_notify_cancel():
            return
        try:
            self.answer.set_result(self.function())
        except Exception as error:
            self.answer.set_exception(error)
            raise


Inbox = queue.SimpleQueue[StepEnded | DatabaseRequest | NewEvent | Reason]


@contextmanager
def _signs_of_life(step_run: StepRun, told: Mapping[str, Any]) -> Iterator[None]:
    """Tell now and then that a long step is still at work."""
    began, loop = time.monotonic(), asyncio.get_running_loop()
    timer = loop.call_later(PROGRESS_EVERY_S, lambda: tell())  # most steps are over before it

    def tell() -> None:
        nonlocal timer
        so_far = {**told, "elapsedMs": int((time.monotonic() - began) * 1000)}
        step_run.tell(NewEvent(EventType.STEP_PROGRESS, so_far))
        timer = loop.call_later(PROGRESS_EVERY_S, tell)

    try:
        yield
    finally:
        timer.cancel()


class RunningSteps:
    """Starts steps and ends them; used on the run's thread alone."""

    def __init__(
        self, run: Run, template: TaskTemplate, inbox: Inbox, resources: RunResources
    ) -> None:
        self._run, self._template, self._inbox = run, template, inbox
        self._resources = resources
        self._active: dict[int, Future[Mapping[str, Any]]] = {}
        self._began: dict[int, float] = {}
        self._session: BrowserSession | None = None
        self._opening = asyncio.Lock()  # used on the loop thread alone
        self._last: BrowserSession | None = None  # what the steps used, a named session too
        self._since = time.monotonic()

    def __len__(self) -> int:
        return len(self._active)

    def indexes(self) -> list[int]:
        """Return the steps under way, by number."""
        return sorted(self._active)

    def launch(
        self,
        row: RunStep,
        *,
        run_deadline: float,
        earlier: Sequence[StepView] = (),
        first: FirstCall | None = None,
    ) -> None:
        """Start a step on the loop thread; `run_deadline` is in `time.monotonic()` seconds, `first`
        a call that began with it.
        """
        limit = time.monotonic() + self._template.step_limit_ms(row.input) / 1000
        paused = row.paused or {}
        # One that a person had may be closed: the step finds that out, and goes on.
        had_page = bool(paused.get("hadPage")) and not paused.get("takenOver")
        step_run = StepRun(
            run=self._run,
            inputs=self._run.inputs,
            index=row.index,
            in_engine=self._ask,
            tell=self._inbox.put,
            deadline=min(run_deadline, limit),
            earlier=earlier,
            replay=paused.get("calls"),
            had_page=had_page,
            attempt_number=row.attempts,
            first=first,
            **self._resources.values_of(row.index),
        )
        plan = StepPlan(row.name, row.input, Effect(row.effect))
        self._began[row.index] = time.monotonic()
        future = get_loop().submit(self._do(plan, step_run, about(row)))
        self._active[row.index] = future
        future.add_done_callback(lambda done: self._inbox.put(StepEnded(step_run, done)))

    def end(self, over: StepEnded) -> float | None:
        """Take a step that is over off the list and return its seconds; None where it
        was canceled.
        """
        index = over.step_run.index
        if self._active.get(index) is not over.future:
            return None
        del self._active[index]
        return time.monotonic() - self._began[index]

    def cancel(self, indexes: list[int]) -> None:
        """Interrupt steps; what they still say is not heard."""
        for index in indexes:
            future = self._active.pop(index, None)
            if future is not None:
                future.cancel()

    def interrupt(self) -> None:
        """Interrupt every step; each still says that it is over. Safe from any thread."""
        for future in list(self._active.values()):
            future.cancel()

    def ending(self, ending: Ending) -> Ending:
        """Return the end of the run with what there is to say of its session."""
        ending = self._resources.ending(ending)
        if self._last is None or self._last.trust == "local":
            return ending
        asking = get_loop().submit(self._late_refusals(self._last))
        try:
            late = asking.result(timeout=CLOSE_S)
        except (TimeoutError, CancelledError):
            return ending
        return replace(ending, warnings=[*ending.warnings, *late])

    async def _late_refusals(self, session: BrowserSession) -> list[str]:
        return session.late_refusals(self._since)

    def close(self) -> None:
        """Interrupt every step and close the run's own session, within a bound; a named one stays
        open, saved as it is.
        """
        self.cancel(list(self._active))
        if not self._template.uses_browser:
            return
        named = self._resources.session
        if named is not None:
            named.save()
            named.check_in()
            return
        task_id = self._run.task_id  # a person who has the page keeps it, past the run's end too
        keeps = (
            self._session is not None
            and task_id is not None
            and Task.objects.is_taken_over(task_id)
        )
        closing = get_loop().submit(self._close(keeps=keeps))
        try:
            closing.result(timeout=CLOSE_S)
        except (TimeoutError, CancelledError):
            log.warning("a browser session did not close in time", extra={"runId": self._run.id})

    def paused(self, row: RunStep, step_run: StepRun, *, taken_over: bool) -> StepChange:
        """Return the line of a step that stopped for a person, and what it leaves open."""
        session = step_run.browser
        had_page = self._template.shares_page and session is not None and session.has_page
        return step_records.paused(row, step_run, had_page=had_page, taken_over=taken_over)

    def hold_page(self, epoch: int) -> bool:
        """Keep the page that the steps share open for when the run goes on, under a later epoch
        than this; tell whether there is one.
        """
        if not self._template.shares_page:
            return False
        if self._resources.session is not None:
            self._resources.session.save()
        parking = get_loop().submit(self._park(epoch))
        try:
            return parking.result(timeout=CLOSE_S)
        except (TimeoutError, CancelledError):
            return False

    async def _park(self, epoch: int) -> bool:
        async with self._opening:
            named, session = self._resources.session, self._session
            if not can_hold_page():
                log.warning(
                    "too many pages wait: this one is closed, and lost to its run",
                    extra={"runId": self._run.id},
                )
                return False
            lent = named.detach_checkout() if named is not None else None
            session = lent.session if lent is not None else session
            if session is None:
                return False
            self._session = None
            hold_page(self._run.id, HeldPage(epoch, session, self._run.session_id, lent))
            return session.has_page

    def _ask(self, function: Callable[[], Any]) -> Future[Any]:
        answer: Future[Any] = Future()
        self._inbox.put(DatabaseRequest(function, answer))
        return answer

    async def _do(
        self, plan: StepPlan, step_run: StepRun, told: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        try:
            with _signs_of_life(step_run, told):
                async with asyncio.timeout(step_run.seconds_left()):
                    if self._template.needs_browser(plan.input):
                        step_run.browser = await self._browser()
                        await record_if_wanted(self._template, plan, step_run)
                    if self._template.shares_page:
                        await restore_page(self._template, plan, step_run)
                    return await self._template.do_step(plan, step_run)
        except TimeoutError:
            details = {"effect": "unknown"} if plan.effect == Effect.ONCE else {}
            raise ToolTimeout(
                f"'{plan.name}' did not end within its time.", details=details
            ) from None
        except (CallFailed, ToolFailed) as failure:
            mark_refusal_reported(failure, step_run)
            await add_evidence(failure, self._template, plan, step_run)
            raise

    async def _browser(self) -> BrowserSession:
        async with self._opening:
            named = self._resources.session
            if named is not None:
                self._last = await named.open()
                return self._shown(self._last)
            if self._session is None and (parked := take_held_page(self._run.id)) is not None:
                self._last = self._session = parked.session
            if self._session is None:
                trust: TrustLevel = "local" if self._run.trust == "local" else "remote"
                self._session = await get_runtime().open_session(run_id=self._run.id, trust=trust)
                self._last = self._session
            return self._shown(self._session)

    def _shown(self, session: BrowserSession) -> BrowserSession:
        """Have people who look at the run's task see this session's page."""
        if self._run.task_id is not None:
            register_page(self._run.task_id, self._run.id, session)
        return session

    async def _close(self, *, keeps: bool) -> None:
        async with self._opening:
            session, self._session = self._session, None
        if session is not None and keeps and session.has_page and can_hold_page():
            hold_page(self._run.id, HeldPage(self._run.epoch, session))
        elif session is not None:
            await session.close()
