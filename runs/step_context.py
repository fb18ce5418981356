"""What a step sees of the world: its inputs and one way to call a tool, policy first."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import orjson

from artifacts.services import KeptBlob, keep_blob
from decisions.errors import PolicyDenied
from decisions.masking import Masker
from decisions.policy import Verdict, judge
from runners.base import ToolCall, ToolContext
from runners.browser.screenshot import keep_picture
from runners.browser.session import BrowserSession
from runners.browser.trace import keep_trace
from runners.invoke import invoke
from runners.trust import TrustLevel
from runs.changes import NewEvent
from runs.event_types import EVENT_TYPES
from runs.failpoints import hit
from runs.models import Run
from runs.task_templates.registry import StepView


class CallFailed(Exception):
    """A tool call that failed or was denied; `error` has the one shape of every door."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message", "")))
        self.error = error


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
    tool: str = ""
    args_digest: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    masker: Masker = field(default_factory=Masker)

    @property
    def session_id(self) -> str:
        """The browser session that the run works in."""
        return self.run.session_id

    async def call(self, tool: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call a tool and return its output.

        Raises:
            CallFailed: The tool failed, or policy denied the call.
        """
        self.tool = tool
        self.args_digest = hashlib.sha256(
            orjson.dumps(args, option=orjson.OPT_SORT_KEYS)
        ).hexdigest()
        verdict = await asyncio.wrap_future(self.in_engine(lambda: self._judge(tool, args)))
        if verdict.decision != "allow":
            raise CallFailed(
                {
                    "errorCode": "POLICY_DENIED",
                    "message": f"Policy does not allow {tool}: {verdict.reason or verdict.rule}.",
                    "details": {"rule": verdict.rule},
                    "retryable": False,
                    "recovery": PolicyDenied.recovery,
                }
            )
        result = await invoke(ToolCall(tool, args), self._tool_context())
        if not result.ok:
            raise CallFailed(result.error or {})
        return result.output or {}

    def _judge(self, tool: str, args: Mapping[str, Any]) -> Verdict:
        return judge(
            principal_id=self.run.principal_id,
            tenant_id=self.run.tenant_id,
            workspace_id=self.run.workspace_id,
            tool=tool,
            target_id=None,
            args=args,
        )

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

    def _tool_context(self) -> ToolContext:
        trust: TrustLevel = "local" if self.run.trust == "local" else "remote"
        return ToolContext(
            run_id=self.run.id,
            trust=trust,
            deadline=self.deadline,
            save_artifact=self._save_artifact,
            emit=self._emit,
            browser=self.browser,
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

    def _emit(self, type_: str, data: Mapping[str, Any]) -> None:
        if type_ not in EVENT_TYPES:
            raise ValueError(f"a tool told an event of the unknown type {type_!r}")
        self.tell(NewEvent(type_, {"step": self.index, **data}))

    def seconds_left(self) -> float:
        """Return the seconds until this step's deadline, never below 0."""
        return max(0.0, self.deadline - time.monotonic())
