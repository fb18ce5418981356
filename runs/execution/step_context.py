"""StepRun: what the template's code for a step sees of the step's attempt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from artifacts.chunks import read_chunk_of_run
from decisions.foundation.errors import Refused
from runners.tools.base import ToolResult
from runs.agent.history import messages_before
from runs.calls.attempt import StepAttempt, Value
from runs.calls.step_call import call_from_step
from runs.journal.interruptions import CallFailed, NeedsAnswer
from runs.lifecycle.lease import require_lease
from runs.models import ANSWER, Run
from runs.steps import HistoryMessage
from runs.task_templates.base import StepView


class StepRun:
    """The context of a step in its template; implements `runs.task_templates.base.StepContext`."""

    def __init__(self, attempt: StepAttempt) -> None:
        self._attempt = attempt

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The run's inputs."""
        inputs: Mapping[str, Any] = self._attempt.run.inputs
        return inputs

    @property
    def shown_inputs(self) -> Mapping[str, Any]:
        """The run's inputs without secrets and without credentials in URLs."""
        shown: Mapping[str, Any] = self._attempt.masker.value(self.inputs)
        return shown

    @property
    def secrets(self) -> Mapping[str, str]:
        """The run's secret inputs by dotted path, if the step needs them."""
        return self._attempt.secrets

    @property
    def session_id(self) -> str:
        """The id of the run's browser session."""
        return self._attempt.run.session_id

    @property
    def earlier(self) -> Sequence[StepView]:
        """The steps before this one, for templates that read them."""
        return self._attempt.earlier

    @property
    def attempt_number(self) -> int:
        """The number of this attempt, from 1, attempts of lost workers included."""
        return self._attempt.number

    @property
    def is_resumed(self) -> bool:
        """Whether the step was suspended for a person before."""
        return self._attempt.replay is not None

    async def call(self, tool: str, args: Mapping[str, Any], **options: Any) -> Mapping[str, Any]:
        """Call a tool and return its output (`runs.calls.step_call.call_from_step`)."""
        return await call_from_step(self._attempt, tool, args, **options)

    async def attempt(self, tool: str, args: Mapping[str, Any], **options: Any) -> ToolResult:
        """Call a tool and return its result; a failure is a result.

        Raises:
            NeedsPerson: As `call_from_step`.
        """
        try:
            return ToolResult(True, await self.call(tool, args, **options))
        except CallFailed as failed:
            return ToolResult(False, error=failed.error)

    async def query_run(self, query: Callable[[Run], Value]) -> Value:
        """Call a function with the run, on the thread with the database, and return its value."""
        return await self._attempt.query_run(query)

    async def check_lease(self) -> None:
        """Return if the run was not canceled and this worker still has its lease; else the run
        stops on this worker.
        """
        await self.query_run(require_lease)

    def seconds_left(self) -> float:
        """Return the seconds until this step's deadline, never below 0."""
        return self._attempt.seconds_left()

    def emit(self, type_: str, data: Mapping[str, Any]) -> None:
        """Send an event of the step to the run's log."""
        self._attempt.emit(type_, data)

    def ask_user(self, question: str, suggestions: Sequence[str] = ()) -> str | None:
        """Return the answer to the question; None where there was none in time.

        Raises:
            NeedsAnswer: The question was not sent yet; the step is suspended.
        """
        if not self.is_resumed:
            raise NeedsAnswer(question, suggestions)
        answer = self._attempt.run.options.get(ANSWER)
        return None if answer is None else str(answer)

    async def message_history(self) -> Sequence[HistoryMessage]:
        """Return the messages of the run's task before the run's own message."""
        task_id = self._attempt.run.task_id
        if task_id is None:
            return ()
        history = await self.query_run(lambda run: messages_before(task_id=task_id, run_id=run.id))
        mask = self._attempt.masker.text
        return [replace(one, content=mask(one.content)) for one in history]

    async def store_output(self, output: Any) -> str:
        """Store an output whole as an artifact of the step, as JSON, but a text as it is; return
        its artifactId.
        """
        save = self._attempt.save
        if isinstance(output, str):
            return await save(output.encode(), name="output.txt", mime_type="text/plain")
        return await save(orjson.dumps(output), name="output.json", mime_type="application/json")

    async def read_stored_chunk(
        self, artifact_id: str, *, offset: int, limit: int
    ) -> dict[str, Any]:
        """Return a chunk of an artifact that this run stored, or {error}."""
        return await self.query_run(lambda run: _read_chunk(run, artifact_id, offset, limit))


def _read_chunk(run: Run, artifact_id: str, offset: int, limit: int) -> dict[str, Any]:
    try:
        return read_chunk_of_run(run_id=run.id, artifact_id=artifact_id, offset=offset, limit=limit)
    except Refused as refused:
        return {"error": refused.as_dict()}
