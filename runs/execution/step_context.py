"""What a step sees of the world: its inputs and one way to call a tool, policy first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import orjson

from artifacts.chunks import read_chunk_of_run
from artifacts.services import StoredBlob, store_blob
from decisions.authorization.authorize import ToolCallRequest
from decisions.errors import Refused
from decisions.infra.trace_context import traceparent_for
from decisions.security.masking import Masker
from runners.browser.interaction.screenshot import save_screenshot
from runners.browser.session.session import BrowserSession
from runners.browser.tracing.artifact import save_trace
from runners.errors import ToolFailed
from runners.gateway.request import RunnerTarget
from runners.invocation.arguments import check_args
from runners.invocation.fallback import Elsewhere, falls_back, local_tool
from runners.invocation.invoke import invoke, raise_if_interrupted
from runners.invocation.step_call import StepCall
from runners.tools.base import ToolCall, ToolContext, ToolResult
from runners.workspace.workspace import Workspace
from runs.agent.history import HistoryMessage, messages_before
from runs.events.types import EVENT_TYPES, EventType
from runs.execution.admission import Place, admit_call
from runs.execution.authorization import (
    page_lost_error,
    record_fallback,
    replayed_call,
    tool_use_of_step,
    trust_of,
)
from runs.execution.first_call import FirstCall
from runs.failpoints import hit
from runs.journal.interruptions import CallFailed, NeedsAnswer, NeedsPerson, TakenOver
from runs.lifecycle.call_records import CallRecord
from runs.lifecycle.changes import NewEvent
from runs.models import ANSWER, TRACE, Run
from runs.task_templates.base import StepView

Found = TypeVar("Found")


@dataclass(slots=True)
class StepRun:
    """One try of one step, living on the loop thread; the engine's thread reads it when it is over.

    Attributes:
        in_engine: run a function on the run's own database thread; policy is asked there.
        tell: give an event to the run's log while the step works.
        deadline: `time.monotonic()` seconds.
        earlier: the steps before this one, where the template looks at them.
        blobs: what the step kept; its rows are written with the step's result.
        secrets: the run's secret inputs by dotted path, where the step needs them.
        masker: takes them out of what the step keeps.
        replay: the calls made before the step stopped for a person; None where it did not stop.
        calls: those of this try, in order, with what they answered.
        made: those that this try made itself, as the audit log tells them.
        opened: ids of the calls under this lease that the audit log tells to be under way.
        had_page: it stopped for a person with a page open, of which that person decides.
        first: the call that was told to begin with this try.
        tries: which try of the step this is, those of lost workers counted.
    """

    run: Run
    inputs: Mapping[str, Any]
    index: int
    in_engine: Callable[[Callable[[], Any]], Future[Any]]
    tell: Callable[[NewEvent], None]
    deadline: float
    browser: BrowserSession | None = None
    earlier: Sequence[StepView] = ()
    blobs: list[StoredBlob] = field(default_factory=list)
    made: list[CallRecord] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    masker: Masker = field(default_factory=Masker)
    replay: Sequence[Mapping[str, Any]] | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    had_page: bool = False
    first: FirstCall | None = None
    attempt_number: int = 1

    def __post_init__(self) -> None:
        if self.first is not None:  # however the step ends, its end tells what came of it
            self.made.append(self.first.call)

    @property
    def session_id(self) -> str:
        """The browser session that the run works in."""
        return self.run.session_id

    async def call(
        self,
        tool: str,
        args: Mapping[str, Any],
        *,
        target_id: str | None = None,
        timeout_ms: int | None = None,
        remote: Elsewhere | None = None,
    ) -> Mapping[str, Any]:
        """Call a tool and return its output; `target_id` is where it works, `timeout_ms` a limit
        below its own, `elsewhere` says that a runner performs it, whatever its name.

        Raises:
            CallFailed: The tool failed, or policy or a person denied the call.
            PageLost: The page is gone on which a person was asked about the call.
            NeedsPerson: The step stops here; it is done again, up to this call from memory, once a
                person has decided.
        """
        use = tool_use_of_step(
            self.run,
            index=self.index,
            call=StepCall(tool, args, target_id, remote),
            masker=self.masker,
            number=len(self.calls),
            may_have_confirmation=self.replay is not None,
        )
        call = replayed_call(use, self.replay)
        if call is None:
            made = await self._perform(use, timeout_ms, remote)
            call = {"tool": tool, "digest": use.digest, **made}
        self.calls.append(call)
        if falls_back(ToolResult(call.get("error") is None, error=call.get("error"))):
            return await self._call_here(tool, args, remote, timeout_ms)
        if call.get("error") is not None:
            raise CallFailed(call["error"])
        output: Mapping[str, Any] = call["output"]
        return output

    async def _call_here(
        self, tool: str, args: Mapping[str, Any], remote: Elsewhere | None, limit: int | None
    ) -> Mapping[str, Any]:
        """Have our own tool do what its runner was not reached for: a call like any other."""
        own, here = local_tool(tool), remote.fallback_target_id if remote else None
        try:
            checked = check_args(own, args) if own is not None else dict(args)
        except (ToolFailed, Refused) as wrong:
            raise CallFailed(wrong.as_dict()) from None
        return await self.call(tool, checked, target_id=here, timeout_ms=limit)

    async def attempt(
        self,
        tool: str,
        args: Mapping[str, Any],
        *,
        target_id: str | None = None,
        timeout_ms: int | None = None,
        remote: Elsewhere | None = None,
    ) -> ToolResult:
        """Call a tool and return what came of it, a failure too.

        Raises:
            NeedsPerson: As `call`.
        """
        try:
            where: Any = {"target_id": target_id, "remote": remote}
            return ToolResult(True, await self.call(tool, args, timeout_ms=timeout_ms, **where))
        except CallFailed as failed:
            return ToolResult(False, error=failed.error)

    async def _perform(
        self, use: ToolCallRequest, timeout_ms: int | None, remote: Elsewhere | None
    ) -> dict[str, Any]:
        first, self.first = self.first, None
        if first is not None and first.use == use:
            return await self._make(use, first.call, _for_whom(first.place, remote), timeout_ms)
        call, is_lost = CallRecord.of(use), self._has_lost_page(use)
        begin = partial(admit_call, use=use, call=call, may_begin=not is_lost, opened=self.opened)
        ruling, place = await self.query_run(begin)
        if isinstance(ruling, Refused):
            return {"error": ruling.as_dict()}
        if is_lost:
            raise page_lost_error(use)
        if ruling is None or ruling.decision == "confirm":
            if self.browser is not None:  # what is recorded while a run waits fills the disk
                await self.browser.tracer.drop()
            raise TakenOver(use) if ruling is None else NeedsPerson(use, ruling)
        if isinstance(place, ToolFailed | Refused):
            return {"error": place.as_dict()}
        self.made.append(call)
        return await self._make(use, call, _for_whom(place, remote), timeout_ms)

    async def _make(
        self, use: ToolCallRequest, call: CallRecord, place: Place | None, timeout_ms: int | None
    ) -> dict[str, Any]:
        context = self._tool_context(place)
        if timeout_ms is not None:
            until = time.monotonic() + timeout_ms / 1000
            context = replace(context, deadline=min(context.deadline, until))
        hit("before_call")
        result = await invoke(ToolCall(use.tool, use.args, use.target_id), context)
        hit("after_call")
        call.record_result(result)
        raise_if_interrupted()
        if falls_back(result):
            await self._tell_fallback(use, str((result.error or {})["details"]["reason"]))
        return {"output": result.output} if result.ok else {"error": result.error or {}}

    def _has_lost_page(self, use: ToolCallRequest) -> bool:
        """Whether a person was asked about a call on a page that is gone."""
        was_asked = self.had_page and use.number == len(self.replay or ())
        return was_asked and (self.browser is None or not self.browser.has_page)

    async def _tell_fallback(self, use: ToolCallRequest, reason: str) -> None:
        await self.query_run(partial(record_fallback, use=use, reason=reason))
        told = {"tool": use.tool, "targetId": use.target_id, "reason": reason}
        self.emit(EventType.TOOL_FELL_BACK, told)

    @property
    def is_resumed(self) -> bool:
        """Whether the step stopped for a person before."""
        return self.replay is not None

    def ask_user(self, question: str, suggestions: Sequence[str] = ()) -> str | None:
        """Return what was answered; None where nobody did in time.

        Raises:
            NeedsAnswer: It was not asked yet: the step stops here.
        """
        if self.replay is None:
            raise NeedsAnswer(question, suggestions)
        answer = self.run.options.get(ANSWER)
        return None if answer is None else str(answer)

    async def message_history(self) -> Sequence[HistoryMessage]:
        """Return what was said in the run's task before the message that it is made for."""
        task_id = self.run.task_id
        if task_id is None:
            return ()
        return await self.query_run(lambda run: messages_before(task_id=task_id, run_id=run.id))

    async def read_stored_chunk(
        self, artifact_id: str, *, offset: int, limit: int
    ) -> dict[str, Any]:
        """Return a chunk of an artifact that this run stored, or {error}."""
        return await self.query_run(lambda run: _read_chunk(run, artifact_id, offset, limit))

    async def query_run(self, look: Callable[[Run], Found]) -> Found:
        """Return what a function finds out about the run, called on the run's database thread."""
        found: Found = await asyncio.wrap_future(self.in_engine(partial(look, self.run)))
        return found

    async def save_screenshot(self, *, url: str | None) -> str | None:
        """Keep a picture of the page that the step failed on, if it kept none; return its id."""
        if self.browser is None or any(blob.kind == "screenshot" for blob in self.blobs):
            return None
        return await save_screenshot(self._tool_context(), url=url)

    async def save_trace(self, told: str) -> str | None:
        """Keep a trace of what led to a failure, named `told` there; return its artifactId."""
        return await save_trace(self._tool_context(), told)

    async def store_output(self, output: Any) -> str:
        """Keep what a call answered, whole, as an artifact of the step; return its artifactId."""
        data = orjson.dumps(output)
        return await self._save(data, name="output.json", mime_type="application/json")

    def _tool_context(self, place: Place | None = None) -> ToolContext:
        return ToolContext(
            run_id=self.run.id,
            trust=trust_of(self.run),
            deadline=self.deadline,
            save_artifact=self._save,
            emit=self.emit,
            browser=self.browser,
            workspace=place if isinstance(place, Workspace) else None,
            runner=place if isinstance(place, RunnerTarget) else None,
            session_id=self.run.session_id,
            traceparent=self.run.options.get(TRACE) or traceparent_for(self.run.id),
            secrets=self.secrets,
            mask=self.masker.text,
        )

    async def _save(self, data: bytes, *, name: str, mime_type: str, kind: str = "file") -> str:
        data = self.masker.data(data, mime_type)
        blob = await asyncio.to_thread(store_blob, data, name=name, mime_type=mime_type, kind=kind)
        hit("blob_kept")
        self.blobs.append(blob)
        return blob.artifact_id

    def emit(self, type_: str, data: Mapping[str, Any]) -> None:
        """Tell an event of the step's own, at once or joined with later ones (`events.pending`).

        Raises:
            ValueError: There is no such type of event.
        """
        if type_ not in EVENT_TYPES:
            raise ValueError(f"a step told an event of the unknown type {type_!r}")
        self.tell(NewEvent(type_, {"step": self.index, **data}))

    def seconds_left(self) -> float:
        """Return the seconds until this step's deadline, never below 0."""
        return max(0.0, self.deadline - time.monotonic())


def _for_whom(place: Place | None, remote: Elsewhere | None) -> Place | None:
    """Return a runner as it is for a caller who may not have our own tool instead."""
    if isinstance(place, RunnerTarget) and remote and not remote.may_fall_back:
        return replace(place, falls_back=False)
    return place


def _read_chunk(run: Run, artifact_id: str, offset: int, limit: int) -> dict[str, Any]:
    try:
        return read_chunk_of_run(run_id=run.id, artifact_id=artifact_id, offset=offset, limit=limit)
    except Refused as refused:  # an answer to the step; the engine would fail the run
        return {"error": refused.as_dict()}
