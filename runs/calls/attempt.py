"""One attempt of one step: what its tool calls are made with, and what they leave."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from artifacts.services import StoredBlob, store_blob
from decisions.authorization.authorize import ToolCallRequest
from decisions.foundation.infra.trace_context import traceparent_for
from decisions.foundation.security.masking import Masker
from decisions.foundation.security.url_credentials import KnownUrls
from decisions.identity.principals import as_trust
from runners.browser.session.session import OpenBrowserSession
from runners.gateway.request import RunnerTarget
from runners.paired_browser.choice import PairedBrowser
from runners.tools.base import Effect, ToolContext
from runners.workspace.workspace import ProjectWorkspace
from runs.calls.record import CallRecord
from runs.calls.step_start import FirstCall
from runs.calls.target import PairedBrowserTarget, StepTarget
from runs.calls.uploads import read_upload
from runs.events.types import EVENT_TYPES
from runs.failpoints import hit
from runs.lifecycle.changes import NewEvent
from runs.models import TRACE, Run
from runs.task_templates.base import StepView

Value = TypeVar("Value")


@dataclass(slots=True)
class StepAttempt:
    """One attempt of one step. Used on the event loop's thread; the engine's thread reads it once
    the attempt has ended.

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
        number: counts from 1, attempts of lost workers included.
        effect: of the step.
        is_lost_call: an earlier worker was lost during this `once` step: its action is not sent
            again, only its result is collected.
    """

    run: Run
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
    number: int = 1
    effect: Effect = Effect.READ
    is_lost_call: bool = False

    def __post_init__(self) -> None:
        if self.first is not None:  # its end is recorded even if the step fails before the call
            self.call_records.append(self.first.call)

    async def query_run(self, query: Callable[[Run], Value]) -> Value:
        """Call a function with the run, on the thread with the database, and return its value."""
        value: Value = await asyncio.wrap_future(self.on_run_thread(partial(query, self.run)))
        return value

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

    async def save(self, data: bytes, *, name: str, mime_type: str, kind: str = "file") -> str:
        """Store bytes without secrets as an artifact of the step; return its artifactId."""
        data = self.masker.data(data, mime_type)
        blob = await asyncio.to_thread(store_blob, data, name=name, mime_type=mime_type, kind=kind)
        hit("blob_kept")
        self.blobs.append(blob)
        return blob.artifact_id

    def tool_context(self, target: StepTarget | None = None, **more: Any) -> ToolContext:
        """Return the context of a call on a target; `more` are further attributes."""
        return ToolContext(
            run_id=self.run.id,
            trust=as_trust(self.run.trust),
            deadline=self.deadline,
            save_artifact=self.save,
            emit=self.emit,
            browser=self.browser,
            workspace=target if isinstance(target, ProjectWorkspace) else None,
            runner=target if isinstance(target, RunnerTarget) else None,
            session_id=self.run.session_id,
            read_upload=self._read_upload,
            traceparent=self.run.options.get(TRACE) or traceparent_for(self.run.id),
            secrets=self.secrets,
            mask=self.masker.text,
            **more,
        )

    async def _read_upload(
        self, *, artifact_id: str | None, path: str | None, limit: int
    ) -> tuple[str, bytes]:
        return await self.query_run(
            partial(read_upload, artifact_id=artifact_id, path=path, limit=limit)
        )

    def paired_browser(
        self, request: ToolCallRequest, browser: PairedBrowserTarget | None = None
    ) -> PairedBrowser:
        """Return the paired browser of a call; without `browser` to ask its page only."""
        return PairedBrowser(
            client_id=request.target_id or "",
            task_id=self.run.task_id or self.run.id,
            task_title=browser.task_title if browser else "",
            action_id=self._action_id(request.number),
            is_sent=browser is not None and self.is_lost_call,
            expected_origin=request.origin,
        )

    def _action_id(self, number: int) -> str:
        """Return the idempotency key of a call in a paired browser. A worker that takes a
        `once` step over computes the same one; a retried step is another action.
        """
        attempt = "" if self.effect == Effect.ONCE else f".{self.number}"
        return f"act_{self.run.id.removeprefix('run_')}.{self.index}.{number}{attempt}"
