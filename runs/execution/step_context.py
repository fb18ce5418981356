"""StepRun: what the template's code for a step gets, with authorized tool calls."""

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
from decisions.authorization.authorize import (
    Authorization,
    ToolCallRequest,
    confirmed_basis,
)
from decisions.foundation.errors import Refused
from decisions.foundation.infra.trace_context import traceparent_for
from decisions.foundation.security.masking import Masker
from decisions.foundation.security.url_credentials import KnownUrls
from runners.browser.reading.screenshot import save_screenshot
from runners.browser.session.session import OpenBrowserSession
from runners.errors import ToolFailed
from runners.gateway.request import RunnerTarget
from runners.invocation.arguments import check_args
from runners.invocation.fallback import RemoteCall, falls_back, local_tool
from runners.invocation.invoke import invoke, raise_if_interrupted
from runners.invocation.step_call import StepCall
from runners.paired_browser.choice import PairedBrowser
from runners.tools.base import Effect, ToolCall, ToolContext, ToolResult
from runners.workspace.workspace import ProjectWorkspace
from runs.agent.history import HistoryMessage, messages_before
from runs.calls.browser_policy import PairedBrowserTarget, client_of_call
from runs.calls.first_call import FirstCall
from runs.calls.page_elements import (
    MAX_RENEWALS,
    PageCall,
    changed_too_often,
    counted_warning,
    may_ask_page,
    was_changed,
    with_shown_element,
    with_warning,
)
from runs.calls.page_judge import PageJudge
from runs.calls.policy import (
    page_lost_error,
    record_fallback,
    replayed_call,
    request_of_step,
    trust_of,
)
from runs.calls.shown_page import with_shown_page
from runs.calls.start import admit_call
from runs.calls.targets import StepTarget
from runs.calls.uploads import read_upload
from runs.events.types import EVENT_TYPES, EventType
from runs.failpoints import hit
from runs.journal.interruptions import CallFailed, NeedsAnswer, NeedsPerson, TakenOver
from runs.lifecycle.call_records import CallRecord
from runs.lifecycle.changes import NewEvent
from runs.lifecycle.lease import require_lease
from runs.models import ANSWER, TRACE, Run
from runs.task_templates.base import StepView

MAX_JUDGEMENTS = 4  # of a call whose element changes between its judgement and its input
Value = TypeVar("Value")


@dataclass(slots=True)
class StepRun:
    """One attempt of one step; implements `runs.task_templates.base.StepContext`.

    It is used on the event loop's thread. The engine's thread reads it once the attempt has ended.

    Attributes:
        on_run_thread: runs a function on the run's own thread, which has the database connection.
        add_event: sends an event to the run's log while the step runs.
        deadline: `time.monotonic()` seconds.
        earlier: the steps before this one, for templates that read them.
        blobs: what the step stored; the artifacts' rows are written with the step's result.
        call_records: the calls that this attempt made, for their audit events.
        in_flight_calls: ids of calls recorded as started under this lease and not as ended.
        secrets: the run's secret inputs by dotted path, if the step needs them.
        masker: removes them, and credentials in URLs, from what the step stores.
        secret_masker: removes the secret inputs alone, from the records of a decision.
        known_urls: the URLs of the inputs, whose credentials a model that requests them does not
            get.
        replay: the calls made before the step was suspended; None where it was not.
        calls: the calls of this attempt, replayed ones too, in order, with their outcomes.
        had_page: the step was suspended with a page open, which the person decided about.
        first: the call that was recorded with the start of this attempt.
        attempt_number: counts from 1, attempts of lost workers included.
        effect: of the step.
        is_lost_call: an earlier worker was lost during this `once` step: its action is not sent
            again, only its result is collected.
    """

    run: Run
    inputs: Mapping[str, Any]
    index: int
    on_run_thread: Callable[[Callable[[], Any]], Future[Any]]
    add_event: Callable[[NewEvent], None]
    deadline: float
    browser: OpenBrowserSession | None = None
    earlier: Sequence[StepView] = ()
    blobs: list[StoredBlob] = field(default_factory=list)
    call_records: list[CallRecord] = field(default_factory=list)
    in_flight_calls: list[str] = field(default_factory=list)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    masker: Masker = field(default_factory=Masker)
    secret_masker: Masker = field(default_factory=Masker)
    known_urls: KnownUrls = field(default_factory=lambda: KnownUrls(None))
    replay: Sequence[Mapping[str, Any]] | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    had_page: bool = False
    first: FirstCall | None = None
    attempt_number: int = 1
    effect: Effect = Effect.READ
    is_lost_call: bool = False

    def __post_init__(self) -> None:
        if self.first is not None:  # its end is recorded even if the step fails before the call
            self.call_records.append(self.first.call)

    @property
    def session_id(self) -> str:
        """The id of the run's browser session."""
        return self.run.session_id

    async def call(
        self,
        tool: str,
        args: Mapping[str, Any],
        *,
        target_id: str | None = None,
        timeout_ms: int | None = None,
        remote: RemoteCall | None = None,
    ) -> Mapping[str, Any]:
        """Call a tool and return its output; the arguments are those of `StepContext.call`.

        Raises:
            CallFailed: The tool failed, or policy or a person denied the call.
            PageLost: The page on which a person was asked to confirm the call was lost.
            NeedsPerson: The step is suspended. Once a person has decided, it runs again from its
                start, with the outcomes of its earlier calls replayed.
        """
        request = request_of_step(
            self.run,
            index=self.index,
            call=StepCall(tool, args, target_id or client_of_call(self.run, tool), remote),
            masker=self.secret_masker,
            number=len(self.calls),
            may_have_confirmation=self.replay is not None,
        )
        request = replace(request, is_lost=self.is_lost_call)
        call = replayed_call(request, self.replay)
        if call is None:
            outcome = await self._perform(request, timeout_ms, remote)
            call = {"tool": tool, "digest": request.digest, **outcome}
        self.calls.append(call)
        if falls_back(ToolResult(call.get("error") is None, error=call.get("error"))):
            return await self._call_local_tool(tool, args, remote, timeout_ms)
        if call.get("error") is not None:
            raise CallFailed(call["error"])
        output: Mapping[str, Any] = call["output"]
        return output

    async def _call_local_tool(
        self, tool: str, args: Mapping[str, Any], remote: RemoteCall | None, limit: int | None
    ) -> Mapping[str, Any]:
        """Call the local tool instead of a runner that was not reached; authorized as any call."""
        own, target_id = local_tool(tool), remote.fallback_target_id if remote else None
        try:
            checked = check_args(own, args) if own is not None else dict(args)
        except (ToolFailed, Refused) as wrong:
            raise CallFailed(wrong.as_dict()) from None
        return await self.call(tool, checked, target_id=target_id, timeout_ms=limit)

    async def attempt(
        self,
        tool: str,
        args: Mapping[str, Any],
        *,
        target_id: str | None = None,
        timeout_ms: int | None = None,
        remote: RemoteCall | None = None,
    ) -> ToolResult:
        """Call a tool and return its result; a failure is a result.

        Raises:
            NeedsPerson: As `call`.
        """
        try:
            where: Any = {"target_id": target_id, "remote": remote}
            return ToolResult(True, await self.call(tool, args, timeout_ms=timeout_ms, **where))
        except CallFailed as failed:
            return ToolResult(False, error=failed.error)

    async def _perform(
        self, request: ToolCallRequest, timeout_ms: int | None, remote: RemoteCall | None
    ) -> dict[str, Any]:
        first, self.first = self.first, None
        if first is not None and first.request == request:
            target = _for_caller(first.target, remote)
            context = self._tool_context(target)
            return await self._invoke(request, first.call, target, timeout_ms, context)
        may_be_judged_again = True
        for judgements in range(1, MAX_JUDGEMENTS + 1):
            outcome, may_be_judged_again = await self._judge_and_perform(
                request, timeout_ms, remote, is_asked=judgements > 1
            )
            if not may_be_judged_again:
                break
            request = replace(request, may_have_confirmation=True)
        return outcome

    async def _judge_and_perform(
        self,
        request: ToolCallRequest,
        timeout_ms: int | None,
        remote: RemoteCall | None,
        *,
        is_asked: bool,
    ) -> tuple[dict[str, Any], bool]:
        """Perform a call as it is judged now; return its outcome, and whether nothing was done
        because something had changed since.
        """
        judge = PageJudge(
            self.run,
            self.browser,
            self.query_run,
            self._tool_context(),
            self._action_id(request.number),
        )
        try:
            request, page = await judge.judge(request, is_asked=is_asked)
        except ToolFailed as failed:
            return {"error": failed.as_dict()}, False
        call, is_lost = CallRecord.of(request), self._has_lost_page(request)
        admit = partial(
            admit_call,
            request=request,
            call=call,
            may_start=not is_lost,
            in_flight_calls=self.in_flight_calls,
        )
        authorization, target = await self.query_run(admit)
        if isinstance(authorization, Refused):
            return {"error": authorization.as_dict()}, False
        if is_lost:
            raise page_lost_error(request)
        if authorization is None or authorization.decision == "confirm":
            if page is None and authorization and not is_asked and may_ask_page(request):
                return {}, True
            return await self._suspend(request, page, authorization), False
        if isinstance(target, ToolFailed | Refused):
            return {"error": target.as_dict()}, False
        self.call_records.append(call)
        target = _for_caller(target, remote)
        context = replace(
            self._tool_context(target),
            confirmed_basis=confirmed_basis(authorization.confirmation),
            judged=page.expected(authorization) if page else None,
        )
        outcome = await self._invoke(request, call, target, timeout_ms, context)
        if page is not None and (confirmation := authorization.confirmation) is not None:
            decision, now = confirmation.decision, page.judged
            counted = await self.query_run(lambda run: counted_warning(decision, now))
            outcome = with_warning(outcome, counted)
        return outcome, page is not None and was_changed(outcome)

    async def _suspend(
        self, request: ToolCallRequest, page: PageCall | None, authorization: Authorization | None
    ) -> dict[str, Any]:
        """Suspend the step for a person; return the error of a call whose element changed after
        each confirmation.

        Raises:
            TakenOver, NeedsPerson: The step is suspended.
        """
        if self.browser is not None:  # a trace that records during the wait fills the disk
            await self.browser.tracer.drop()
        if authorization is None:
            raise TakenOver(request)
        request = replace(request, target_state=authorization.target_state)
        older = authorization.supersedes
        if page is None:
            shown = partial(with_shown_page, request=request, journal=self.earlier)
            raise NeedsPerson(await self.query_run(shown), authorization)
        if authorization.renewals > MAX_RENEWALS:
            failed = await self.query_run(lambda run: changed_too_often(page.judged, older))
            return {"error": failed.as_dict()}
        shown_to = await self.query_run(lambda run: with_shown_element(request, page.judged, older))
        raise NeedsPerson(shown_to, authorization)

    async def _invoke(
        self,
        request: ToolCallRequest,
        call: CallRecord,
        target: StepTarget | None,
        timeout_ms: int | None,
        context: ToolContext,
    ) -> dict[str, Any]:
        if isinstance(target, PairedBrowserTarget):
            context = replace(context, paired_browser=self._paired_browser(target, request))
        if timeout_ms is not None:
            until = time.monotonic() + timeout_ms / 1000
            context = replace(context, deadline=min(context.deadline, until))
        hit("before_call")
        is_for_page = context.runner is None and context.workspace is None
        args = self.known_urls.restored(request.args) if is_for_page else request.args
        result = await invoke(ToolCall(request.tool, args, request.target_id), context)
        hit("after_call")
        call.record_result(result)
        raise_if_interrupted()
        if falls_back(result):
            await self._record_fallback(request, str((result.error or {})["details"]["reason"]))
        return {"output": result.output} if result.ok else {"error": result.error or {}}

    def _has_lost_page(self, request: ToolCallRequest) -> bool:
        """Return whether a person was asked to confirm this call on a page that was lost."""
        was_asked = self.had_page and request.number == len(self.replay or ())
        return was_asked and (self.browser is None or not self.browser.has_page)

    async def _record_fallback(self, request: ToolCallRequest, reason: str) -> None:
        await self.query_run(partial(record_fallback, request=request, reason=reason))
        data = {"tool": request.tool, "targetId": request.target_id, "reason": reason}
        self.emit(EventType.TOOL_FELL_BACK, data)

    @property
    def is_resumed(self) -> bool:
        """Whether the step was suspended for a person before."""
        return self.replay is not None

    def ask_user(self, question: str, suggestions: Sequence[str] = ()) -> str | None:
        """Return the answer to the question; None where there was none in time.

        Raises:
            NeedsAnswer: The question was not sent yet; the step is suspended.
        """
        if self.replay is None:
            raise NeedsAnswer(question, suggestions)
        answer = self.run.options.get(ANSWER)
        return None if answer is None else str(answer)

    async def message_history(self) -> Sequence[HistoryMessage]:
        """Return the messages of the run's task before the run's own message."""
        task_id = self.run.task_id
        if task_id is None:
            return ()
        history = await self.query_run(lambda run: messages_before(task_id=task_id, run_id=run.id))
        mask = self.masker.text
        return [replace(one, content=mask(one.content)) for one in history]

    @property
    def shown_inputs(self) -> Mapping[str, Any]:
        """The run's inputs without secrets and without credentials in URLs."""
        shown: Mapping[str, Any] = self.masker.value(self.inputs)
        return shown

    async def check_lease(self) -> None:
        """Return if the run was not canceled and this worker still has its lease; else the run
        stops on this worker.
        """
        await self.query_run(require_lease)

    async def read_stored_chunk(
        self, artifact_id: str, *, offset: int, limit: int
    ) -> dict[str, Any]:
        """Return a chunk of an artifact that this run stored, or {error}."""
        return await self.query_run(lambda run: _read_chunk(run, artifact_id, offset, limit))

    async def query_run(self, query: Callable[[Run], Value]) -> Value:
        """Call a function with the run, on the thread with the database, and return its value."""
        value: Value = await asyncio.wrap_future(self.on_run_thread(partial(query, self.run)))
        return value

    async def save_screenshot(self, *, url: str | None) -> str | None:
        """Store a screenshot of the page that the step failed on, unless it stored one; return its
        artifactId.
        """
        if self.browser is None or any(blob.kind == "screenshot" for blob in self.blobs):
            return None
        return await save_screenshot(self._tool_context(), url=url)

    async def save_trace(self, title: str) -> str | None:
        """Store the trace of what led to a failure under a title; return its artifactId."""
        if self.browser is None or (data := await self.browser.take_trace(title)) is None:
            return None
        return await self._save(data, name="trace.zip", mime_type="application/zip", kind="trace")

    async def store_output(self, output: Any) -> str:
        """Store an output whole as an artifact of the step, as JSON, but a text as it is; return
        its artifactId.
        """
        if isinstance(output, str):
            return await self._save(output.encode(), name="output.txt", mime_type="text/plain")
        data = orjson.dumps(output)
        return await self._save(data, name="output.json", mime_type="application/json")

    def _paired_browser(
        self, browser: PairedBrowserTarget, request: ToolCallRequest
    ) -> PairedBrowser:
        return PairedBrowser(
            client_id=browser.client.id,
            task_id=self.run.task_id or self.run.id,
            task_title=browser.task_title,
            action_id=self._action_id(request.number),
            is_sent=self.is_lost_call,
            expected_origin=request.origin,
        )

    def _action_id(self, number: int) -> str:
        """Return the idempotency key of a call in a paired browser. A worker that takes a
        `once` step over computes the same one; a retried step is another action.
        """
        attempt = "" if self.effect == Effect.ONCE else f".{self.attempt_number}"
        return f"act_{self.run.id.removeprefix('run_')}.{self.index}.{number}{attempt}"

    def _tool_context(self, target: StepTarget | None = None) -> ToolContext:
        return ToolContext(
            run_id=self.run.id,
            trust=trust_of(self.run),
            deadline=self.deadline,
            save_artifact=self._save,
            emit=self.emit,
            browser=self.browser,
            workspace=target if isinstance(target, ProjectWorkspace) else None,
            runner=target if isinstance(target, RunnerTarget) else None,
            session_id=self.run.session_id,
            read_upload=self._read_upload,
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

    async def _read_upload(
        self, *, artifact_id: str | None, path: str | None, limit: int
    ) -> tuple[str, bytes]:
        return await self.query_run(
            partial(read_upload, artifact_id=artifact_id, path=path, limit=limit)
        )

    def emit(self, type_: str, data: Mapping[str, Any]) -> None:
        """Send an event of the step to the run's log (`runs.execution.event_buffer`).

        Raises:
            ValueError: There is no such type of event.
        """
        if type_ not in EVENT_TYPES:
            raise ValueError(f"unknown event type {type_!r}; runs.events.types.EventType has all")
        self.add_event(NewEvent(type_, {"step": self.index, **data}))

    def seconds_left(self) -> float:
        """Return the seconds until this step's deadline, never below 0."""
        return max(0.0, self.deadline - time.monotonic())


def _for_caller(target: StepTarget | None, remote: RemoteCall | None) -> StepTarget | None:
    """Return the target; for a caller who may not use the local tool, without a fallback to it."""
    if isinstance(target, RunnerTarget) and remote and not remote.may_fall_back:
        return replace(target, falls_back=False)
    return target


def _read_chunk(run: Run, artifact_id: str, offset: int, limit: int) -> dict[str, Any]:
    try:
        return read_chunk_of_run(run_id=run.id, artifact_id=artifact_id, offset=offset, limit=limit)
    except Refused as refused:
        return {"error": refused.as_dict()}
