"""The base class of task templates, and the types that templates and the engine exchange.

A template plans a run's steps at submit, performs them one by one or several at once, and concludes
the run from the steps in the journal. It imports neither the engine nor a browser. To add one, add
a file to `builtin` or to a module of CONTINUITY_TEMPLATE_MODULES (docs/adding-a-template.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeVar

from jsonschema_rs import Draft202012Validator
from pydantic import BaseModel

from decisions.foundation.security.masking import MASK
from decisions.foundation.validation.json_schema import (
    compile_schema,
    has_secret_fields,
    schema_of,
    secret_paths,
)
from decisions.identity.principals import Principal
from runners.invocation.fallback import RemoteCall
from runners.invocation.planned_call import StepCall
from runners.tools.base import Effect, ToolResult
from runs.agent.history import HistoryMessage
from runs.models import Run, RunStatus
from runs.task_templates.subjects import default_subject
from runs.task_templates.truncation import answer_schema

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class StepPlan:
    """A planned step.

    Attributes:
        needs_secrets: the step uses the run's secret inputs, or its output may show them. They are
            deleted after the last such step; after that nothing is masked.
    """

    name: str
    input: Mapping[str, Any]
    effect: Effect = Effect.READ
    needs_secrets: bool = False


@dataclass(frozen=True, slots=True)
class StepView:
    """A step in the journal; `output` is set once it succeeded, `error` once it failed."""

    index: int
    name: str
    input: Mapping[str, Any]
    succeeded: bool
    output: Mapping[str, Any] | None
    error: Mapping[str, Any] | None
    effect: Effect = Effect.READ


@dataclass(frozen=True, slots=True)
class Conclusion:
    """How a run ends: its final status, with its result or error.

    Attributes:
        shown_characters: how much of each page's text the run's answer shows; the stored result has
            all of it. None: all.
    """

    status: RunStatus
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    summary: str = ""
    warnings: Sequence[str] = ()
    next_actions: Sequence[Mapping[str, Any]] = field(default=())
    shown_characters: int | None = None


class StepContext(Protocol):
    """What a step may use. Tool calls are authorized by policy first."""

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The run's inputs, with `***` in place of secret values."""

    @property
    def shown_inputs(self) -> Mapping[str, Any]:
        """The inputs without credentials in URLs too, for a model."""

    @property
    def secrets(self) -> Mapping[str, str]:
        """The secret inputs that the step gets, by dotted path."""

    @property
    def session_id(self) -> str:
        """The id of the run's browser session."""

    @property
    def earlier(self) -> Sequence[StepView]:
        """The steps before this one; only if the template has shares_page or last_step_waits."""

    def call(
        self,
        tool: str,
        args: Mapping[str, Any],
        *,
        target_id: str | None = None,
        timeout_ms: int | None = None,
        remote: RemoteCall | None = None,
    ) -> Awaitable[Mapping[str, Any]]:
        """Call a tool and return its output.

        Args:
            target_id: the workspace or runner; None for the default one of the tool's kind.
            timeout_ms: at most this long; None for the tool's own limit.
            remote: a runner performs the call, even if a local tool has the same name.

        Raises:
            ToolFailed: The tool failed.
            PolicyDenied: Policy or a person denied the call.
        """

    def attempt(
        self,
        tool: str,
        args: Mapping[str, Any],
        *,
        target_id: str | None = None,
        timeout_ms: int | None = None,
        remote: RemoteCall | None = None,
    ) -> Awaitable[ToolResult]:
        """Call a tool as `call` does, and return its result; a failure is a result."""

    def query_run(self, query: Callable[[Run], Value]) -> Awaitable[Value]:
        """Run a database query about the run in a thread, and return its value."""

    def message_history(self) -> Awaitable[Sequence[HistoryMessage]]:
        """Return the messages of the run's task before the run's own message."""

    def check_lease(self) -> Awaitable[None]:
        """Return if the run was not canceled; else stop the run on this worker."""

    def store_output(self, output: Any) -> Awaitable[str]:
        """Store an output whole as an artifact of the step; return its artifactId."""

    @property
    def is_resumed(self) -> bool:
        """Whether the step was suspended for a person, and now runs again from its start."""

    @property
    def attempt_number(self) -> int:
        """The number of this attempt at the step; 1 is the first, those of lost workers count."""

    def seconds_left(self) -> float:
        """Return the seconds until the step's deadline."""

    def emit(self, type_: str, data: Mapping[str, Any]) -> None:
        """Write an event to the run's log (runs/events/types.py); consecutive pieces of a text are
        merged into one event.
        """

    def ask_user(self, question: str, suggestions: Sequence[str] = ()) -> str | None:
        """Ask the user a question, and return the answer; None if there was none in time.

        Without an answer yet, the call suspends the run: the worker is released, and the step runs
        again from its start once there is one. A step may ask once.

        Args:
            suggestions: answers to choose from; the user may give another one.
        """

    def read_stored_chunk(
        self, artifact_id: str, *, offset: int, limit: int
    ) -> Awaitable[dict[str, Any]]:
        """Return a chunk of one of this run's artifacts (S0 §3.3), or {error}."""


class TaskTemplate(ABC):
    """A kind of run. One instance serves every run, so it has no state.

    Attributes:
        keeps_session: a run without a sessionId gets a browser session that stays open after it.
        closes_tabs: in a paired browser its tabs do not outlive the run, however that ends.
        shares_page: the steps work in the same tab, one after another. If its page is lost with the
            worker, the earlier steps are repeated first, unless one has the effect `once`.
        last_step_waits: the last step starts when all others have ended.
        is_listed: callers may run it; else only this program submits it.
        step_retries: how often a step is retried after a retryable error.
    """

    template_id: ClassVar[str]
    version: ClassVar[str] = "1.0.0"
    name: ClassVar[str]
    description: ClassVar[str]
    inputs_model: ClassVar[type[BaseModel]]
    result_schema: ClassVar[Mapping[str, Any]]
    example_inputs: ClassVar[Sequence[Mapping[str, Any]]]
    trust_levels: ClassVar[Sequence[str]] = ("local", "remote")
    is_listed: ClassVar[bool] = True
    uses_browser: ClassVar[bool] = False
    keeps_session: ClassVar[bool] = False
    closes_tabs: ClassVar[bool] = False
    shares_page: ClassVar[bool] = False
    last_step_waits: ClassVar[bool] = False
    stops_at_failed_step: ClassVar[bool] = True
    step_retries: ClassVar[int] = 0
    step_timeout_ms: ClassVar[int] = 120_000
    limits: ClassVar[Mapping[str, int]] = {}

    @cached_property
    def inputs_schema(self) -> dict[str, Any]:
        """The closed JSON Schema of the inputs."""
        return schema_of(self.inputs_model)

    @cached_property
    def inputs_validator(self) -> Draft202012Validator:
        """The compiled schema of the inputs; if some are secret, its errors contain no values."""
        is_overridden = type(self).secret_paths is not TaskTemplate.secret_paths
        mask = MASK if is_overridden or has_secret_fields(self.inputs_schema) else None
        return compile_schema(self.inputs_schema, mask=mask)

    def secret_paths(self, inputs: Mapping[str, Any]) -> set[tuple[str | int, ...]]:
        """Return the paths of the secrets in valid inputs: by default the `writeOnly` fields."""
        return secret_paths(self.inputs_schema, inputs)

    def session_name(self, inputs: Mapping[str, Any]) -> str:
        """Return the name of the session that a run with these inputs leaves open."""
        return self.name

    def subject(self, inputs: Mapping[str, Any]) -> str:
        """Return what a run with these inputs is about: a line that tells it from others in lists
        and messages (`runs.task_templates.subjects`). Secret inputs are `***`.
        """
        return default_subject(self.name, inputs)

    def complete_inputs(self, inputs: Mapping[str, Any], principal: Principal) -> Mapping[str, Any]:
        """Return valid inputs completed from the caller's data; called once, at submit.

        Raises:
            InvalidInput: The inputs name something that the caller does not have.
        """
        return inputs

    @abstractmethod
    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return the planned steps of a run with these inputs, in order."""

    @abstractmethod
    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Perform one step and return its output.

        Raises:
            ToolFailed: The step failed.
        """

    @abstractmethod
    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return how the run ends; called when no step is left."""

    def next_step(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> StepPlan | None:
        """Return a step to append once all steps so far have ended, or None to conclude the run.

        For templates that choose a step by the results of the ones before. The new row is committed
        with the output of the previous step, so the same journal must lead to the same step.
        """
        return None

    def skip_reason(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> str:
        """Return why the remaining steps are skipped, or "" to continue.

        Called between the steps of a template that has shares_page.
        """
        return ""

    def uses_shared_page(self, step_input: Mapping[str, Any]) -> bool:
        """Return whether a step works on the shared page: only then is a lost page restored for it,
        and only then is it repeated to restore one.
        """
        return True

    def starts_before_commit(self, step_input: Mapping[str, Any]) -> bool:
        """Return whether a step may start before its start is committed: it must have no effect."""
        return False

    def first_call(
        self, step_input: Mapping[str, Any], inputs: Mapping[str, Any]
    ) -> StepCall | None:
        """Return the call that a step certainly starts with; its record is committed with the
        step's start.
        """
        return None

    def step_limit_ms(self, step_input: Mapping[str, Any]) -> int:
        """Return how long a step with this input may take."""
        return self.step_timeout_ms

    def needs_browser(self, step_input: Mapping[str, Any]) -> bool:
        """Return whether a step with this input needs a browser."""
        return self.uses_browser

    def concurrency(self, inputs: Mapping[str, Any]) -> int:
        """Return how many steps may run at once."""
        return 1

    def shares_steps(self, inputs: Mapping[str, Any]) -> bool:
        """Return whether idle workers may take steps of such a run; then no step may be `once`."""
        return False

    def prefers_sync(self, inputs: Mapping[str, Any]) -> bool:
        """Return whether mode auto waits for the result of a run with these inputs."""
        return True

    def describe(self) -> dict[str, Any]:
        """Return the template as an entry of `list_task_templates`."""
        return {
            "templateId": self.template_id,
            "version": self.version,
            "name": self.name,
            "description": self.description,
            "inputSchema": self.inputs_schema,
            "outputSchema": answer_schema(self.result_schema),
            "limits": dict(self.limits),
            "exampleInputs": [dict(example) for example in self.example_inputs],
            "trustLevelSupport": list(self.trust_levels),
            "executionMode": "sync_or_async",
        }
