"""What a step sees of the world: its inputs and one way to call a tool, policy first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import orjson

from artifacts.services import KeptBlob, keep_blob
from decisions import deeds
from decisions.deeds import ToolUse
from decisions.masking import Masker
from runners.base import Tool, ToolCall, ToolContext, ToolResult
from runners.browser.kept_trace import keep_trace
from runners.browser.screenshot import keep_picture
from runners.browser.session import BrowserSession
from runners.errors import PageLost, ToolFailed
from runners.invoke import invoke, raise_if_interrupted
from runners.registry import get_tool
from runners.targets import Caller
from runners.trust import TrustLevel
from runners.workspace.place import Workspace
from runners.workspaces import check_may_use, open_workspace
from runs.changes import NewEvent
from runs.claims import LeaseLost
from runs.conversations.history import Told, messages_before
from runs.events.types import EVENT_TYPES
from runs.failpoints import hit
from runs.made_calls import MadeCall, begun
from runs.models import DEVELOPER_TARGET, Run
from runs.open_calls import open_call_of_run
from runs.step_rulings import CallFailed as CallFailed
from runs.step_rulings import NeedsPerson as NeedsPerson
from runs.step_rulings import TakenOver, rule_on_call
from runs.task_templates.registry import StepView


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
        replay: the calls that the step made before it stopped for a person, which are not made
            again; None where it did not stop.
        calls: those of this try, in order, with what they answered.
        made: those that this try made itself, as the audit log tells them.
        opened: ids of all calls under this lease that the audit log told before they were made.
        had_page: it stopped for a person with a page open, of which that person decides.
    """

    run: Run
    inputs: Mapping[str, Any]
    index: int
    in_engine: Callable[[Callable[[], Any]], Future[Any]]
    tell: Callable[[NewEvent], None]
    deadline: float
    browser: BrowserSession | None = None
    earlier: Sequence[StepView] = ()
    blobs: list[KeptBlob] = field(default_factory=list)
    made: list[MadeCall] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    masker: Masker = field(default_factory=Masker)
    replay: Sequence[Mapping[str, Any]] | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    had_page: bool = False

    @property
    def session_id(self) -> str:
        """The browser session that the run works in."""
        return self.run.session_id

    async def call(
        self, tool: str, args: Mapping[str, Any], *, target_id: str | None = None,
        timeout_ms: int | None = None,
    ) -> Mapping[str, Any]:  # fmt: skip
        """Call a tool and return its output; `target_id` is where a workspace tool works,
        `timeout_ms` a limit below the tool's own.

        Raises:
            CallFailed: The tool failed, or policy or a person denied the call.
            PageLost: The page is gone on which a person was asked about the call.
            NeedsPerson: The step stops here; it is done again, up to this call from memory, once a
                person has decided.
        """
        use = self._use(tool, args, target_id)
        call = self._remembered(use)
        if call is None:
            call = {"tool": tool, "digest": use.digest, **await self._perform(use, timeout_ms)}
        self.calls.append(call)
        if call.get("error") is not None:
            raise CallFailed(call["error"])
        output: Mapping[str, Any] = call["output"]
        return output

    async def attempt(
        self, tool: str, args: Mapping[str, Any], *, target_id: str | None = None,
        timeout_ms: int | None = None,
    ) -> ToolResult:  # fmt: skip
        """Call a tool and return what came of it, a failure too.

        Raises:
            NeedsPerson: As `call`.
        """
        try:
            return ToolResult(
                True, await self.call(tool, args, target_id=target_id, timeout_ms=timeout_ms)
            )
        except CallFailed as failed:
            return ToolResult(False, error=failed.error)

    async def _perform(self, use: ToolUse, timeout_ms: int | None) -> dict[str, Any]:
        ruling = await asyncio.wrap_future(self.in_engine(lambda: rule_on_call(use, self.run)))
        if ruling is not None and ruling.decision == "deny":
            return {"error": deeds.denial(use, ruling).as_dict()}
        self._check_page_is_there(use)
        if ruling is None or ruling.decision == "confirm":
            if self.browser is not None:  # what is recorded while a run waits fills the disk
                await self.browser.tracer.drop()
            raise TakenOver(use) if ruling is None else NeedsPerson(use, ruling)
        call, workspace = MadeCall.of(use), None
        tool = get_tool(use.tool)
        if tool is not None and tool.kind == "workspace":
            begin = partial(self._begin, tool, use, call)
            workspace = await asyncio.wrap_future(self.in_engine(begin))
        if isinstance(workspace, ToolFailed):
            return {"error": workspace.as_dict()}
        self.made.append(call)
        context = self._tool_context(workspace)
        if timeout_ms is not None:
            until = time.monotonic() + timeout_ms / 1000
            context = replace(context, deadline=min(context.deadline, until))
        result = await invoke(ToolCall(use.tool, use.args, use.target_id), context)
        call.ended(result)
        raise_if_interrupted()
        return {"output": result.output or {}} if result.ok else {"error": result.error or {}}

    def _check_page_is_there(self, use: ToolUse) -> None:
        """Make sure that the page is still there on which a person was asked (runs.md,
        "Concurrency").
        """
        was_asked = self.had_page and use.number == len(self.replay or ())
        if was_asked and (self.browser is None or not self.browser.has_page):
            raise PageLost(
                "The page was lost while the run waited for a person; nothing was done on it"
                " since.",
                details={"causeCode": "PAGE_CRASHED", "effect": "none", "step": self.index},
            )

    def _begin(self, tool: Tool, use: ToolUse, call: MadeCall) -> Workspace | ToolFailed:
        """Return the folder that a call of a workspace tool works in, or why there is none for it;
        on the run's database thread. A call that may change something is told first.

        Raises:
            LeaseLost: The run is not ours any more; the call is not to be made.
        """
        run, trust = self.run, self._trust
        caller = Caller(run.principal_id, run.tenant_id, run.workspace_id, trust)
        chosen = run.options.get(DEVELOPER_TARGET)
        try:
            workspace = open_workspace(
                caller, use.target_id, developer_target=chosen, tool=tool.name
            )
            check_may_use(tool, workspace, trust=trust)
        except ToolFailed as failed:
            return failed
        if call.call_id:
            if not open_call_of_run(call.call_id, begun(run, self.index, call), run):
                raise LeaseLost(run.id)
            self.opened.append(call.call_id)
        return workspace

    def _remembered(self, use: ToolUse) -> dict[str, Any] | None:
        """Return what this call answered before the step stopped for a person, if it was made.

        Raises:
            ToolFailed: The step takes another way than before: what was done is not done again, and
                what was approved was approved of the other way.
        """
        if self.replay is None or use.number >= len(self.replay):
            return None
        call = dict(self.replay[use.number])
        if call["tool"] != use.tool or call["digest"] not in use.digests:
            raise ToolFailed(
                f"After the wait the step calls {use.tool} where it had called {call['tool']}.",
                details={"causeCode": "STEP_CHANGED", "effect": "unknown"},
            )
        return call

    def _use(self, tool: str, args: Mapping[str, Any], target_id: str | None) -> ToolUse:
        run = self.run
        return ToolUse(
            principal_id=run.principal_id, tenant_id=run.tenant_id, workspace_id=run.workspace_id,
            user_id=run.user_id, tool=tool, args=args, target_id=target_id, run_id=run.id,
            step_index=self.index, number=len(self.calls), was_asked=self.replay is not None,
            shown=self.masker.value(args), is_own=get_tool(tool) is not None,
        )  # fmt: skip

    async def said_before(self) -> Sequence[Told]:
        """Return what was said in the run's task before the message that it is made for."""
        run = self.run
        if run.task_id is None:
            return ()
        read = partial(messages_before, task_id=run.task_id, run_id=run.id)
        said: Sequence[Told] = await asyncio.wrap_future(self.in_engine(read))
        return said

    async def keep_picture(self, *, url: str | None) -> str | None:
        """Keep a picture of the page that the step failed on, unless it kept one itself; return
        its artifactId.
        """
        if self.browser is None or any(blob.kind == "screenshot" for blob in self.blobs):
            return None
        return await keep_picture(self._tool_context(), url=url)

    async def keep_trace(self, told: str) -> str | None:
        """Keep a trace of what led to a failure, named `told` there; return its artifactId."""
        return await keep_trace(self._tool_context(), told)

    async def keep_output(self, output: Mapping[str, Any]) -> str:
        """Keep what a call answered, whole, as an artifact of the step; return its artifactId."""
        return await self._save(orjson.dumps(output), "output.json", "application/json", "file")

    @property
    def _trust(self) -> TrustLevel:
        return "local" if self.run.trust == "local" else "remote"

    def _tool_context(self, workspace: Workspace | None = None) -> ToolContext:
        return ToolContext(
            run_id=self.run.id,
            trust=self._trust,
            deadline=self.deadline,
            save_artifact=self._save_artifact,
            emit=self.emit,
            browser=self.browser,
            workspace=workspace,
            secrets=self.secrets,
            mask=self.masker.text,
        )

    async def _save(self, data: bytes, name: str, mime_type: str, kind: str) -> str:
        data = self.masker.data(data, mime_type)
        blob = await asyncio.to_thread(keep_blob, data, name=name, mime_type=mime_type, kind=kind)
        hit("blob_kept")
        self.blobs.append(blob)
        return blob.artifact_id

    def _save_artifact(
        self, data: bytes, *, name: str, mime_type: str, kind: str = "file"
    ) -> Awaitable[str]:
        return self._save(data, name, mime_type, kind)

    def emit(self, type_: str, data: Mapping[str, Any]) -> None:
        """Tell an event of the step's own: at once, or joined with what comes after it
        (`runs.events.pending`).

        Raises:
            ValueError: There is no such type of event.
        """
        if type_ not in EVENT_TYPES:
            raise ValueError(f"a step told an event of the unknown type {type_!r}")
        self.tell(NewEvent(type_, {"step": self.index, **data}))

    def seconds_left(self) -> float:
        """Return the seconds until this step's deadline, never below 0."""
        return max(0.0, self.deadline - time.monotonic())
