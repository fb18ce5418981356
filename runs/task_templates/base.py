"""Templates: what one is, and where it is found. Adding one is one file beside this one.

A template plans its steps when the run is submitted, does them one by one (or several at once), and
concludes from what they left in the journal. It imports neither the engine nor a browser.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeVar

from jsonschema_rs import Draft202012Validator
from pydantic import BaseModel

from decisions.identity.principals import Principal
from decisions.security.masking import MASK
from decisions.validation.json_schema import compile_schema, marks_secrets, schema_of, secret_paths
from runners.invocation.fallback import Elsewhere
from runners.invocation.step_call import StepCall
from runners.tools.base import Effect, ToolResult
from runs.agent.history import HistoryMessage
from runs.models import Run, RunStatus
from runs.task_templates.truncation import answer_schema

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class StepPlan:
    """A step as it will stand in the journal before anything is done.

    Attributes:
        needs_secrets: it uses the run's secret inputs, or tells of a page that may show them; they
            are deleted after the last such step, and nothing is masked once they are.
    """

    name: str
    input: Mapping[str, Any]
    effect: Effect = Effect.READ
    needs_secrets: bool = False


@dataclass(frozen=True, slots=True)
class StepView:
    """A step as its journal has it; `output` and `error` as far as it got."""

    index: int
    name: str
    input: Mapping[str, Any]
    succeeded: bool
    output: Mapping[str, Any] | None
    error: Mapping[str, Any] | None
    effect: Effect = Effect.READ


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a run amounts to once its steps are done."""

    status: RunStatus
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    summary: str = ""
    warnings: Sequence[str] = ()
    next_actions: Sequence[Mapping[str, Any]] = field(default=())


class StepContext(Protocol):
    """What a step may use: tools, through the one door that asks policy first."""

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The run's inputs, `***` in place of what is secret."""

    @property
    def session_id(self) -> str:
        """The browser session that the run works in."""

    @property
    def earlier(self) -> Sequence[StepView]:
        """The steps before this one, for templates that share a page or whose last step waits."""

    def call(
        self,
        tool: str,
        args: Mapping[str, Any],
        *,
        target_id: str | None = None,
        timeout_ms: int | None = None,
        remote: Elsewhere | None = None,
    ) -> Awaitable[Mapping[str, Any]]:
        """Call a tool and return its output; raises ToolFailed or PolicyDenied."""

    def attempt(
        self,
        tool: str,
        args: Mapping[str, Any],
        *,
        target_id: str | None = None,
        timeout_ms: int | None = None,
        remote: Elsewhere | None = None,
    ) -> Awaitable[ToolResult]:
        """Call a tool and return what came of it, a failure too."""

    def query_run(self, look: Callable[[Run], Found]) -> Awaitable[Found]:
        """Return what a function finds out about the run, where the database may be asked."""

    def message_history(self) -> Awaitable[Sequence[HistoryMessage]]:
        """Return what was said in the run's task before the message that it is made for."""

    def store_output(self, output: Any) -> Awaitable[str]:
        """Keep what a call answered, whole, as an artifact of the step; return its artifactId."""

    @property
    def is_resumed(self) -> bool:
        """Whether the step stopped for a person before, and is done again from its beginning."""

    @property
    def attempt_number(self) -> int:
        """Which try of the step this is; a lost worker's counts."""

    def seconds_left(self) -> float:
        """Return the seconds until the step's deadline."""

    def emit(self, type_: str, data: Mapping[str, Any]) -> None:
        """Tell an event of the step in the run's log (runs/events/types.py); the pieces of a text
        are joined.
        """

    def ask_user(self, question: str, suggestions: Sequence[str] = ()) -> str | None:
        """Ask whoever handed the run in, and return the answer, one of those suggested or another;
        None where nobody answered in time.

        The run waits without a worker meanwhile: the step ends here, and is done again once there
        is an answer. A step may ask once.
        """

    def read_stored_chunk(
        self, artifact_id: str, *, offset: int, limit: int
    ) -> Awaitable[dict[str, Any]]:
        """Return a chunk of an artifact that this run kept, as S0 §3.3 has it, or {error}."""


class TaskTemplate(ABC):
    """A kind of run. Class attributes say what it is; one instance serves every run, so it keeps no
    state.

    Attributes:
        keeps_session: a run that names no session gets one that stays open after it.
        shares_page: its steps work on one page after another, in the same tab. When that page is
            lost with its worker, the steps before are done again first, unless one of them has the
            effect `once`.
        last_step_waits: its last step begins when all others are over.
    """

    template_id: ClassVar[str]
    version: ClassVar[str] = "1.0.0"
    name: ClassVar[str]
    description: ClassVar[str]
    inputs_model: ClassVar[type[BaseModel]]
    result_schema: ClassVar[Mapping[str, Any]]
    example_inputs: ClassVar[Sequence[Mapping[str, Any]]]
    trust_levels: ClassVar[Sequence[str]] = ("local", "remote")
    uses_browser: ClassVar[bool] = False
    keeps_session: ClassVar[bool] = False
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
        """The compiled schema of the inputs; where some are secret, its errors echo no value."""
        finds_more = type(self).secret_paths is not TaskTemplate.secret_paths
        mask = MASK if finds_more or marks_secrets(self.inputs_schema) else None
        return compile_schema(self.inputs_schema, mask=mask)

    def secret_paths(self, inputs: Mapping[str, Any]) -> set[tuple[str | int, ...]]:
        """Return where in valid inputs the secrets are: fields marked `writeOnly` in the schema."""
        return secret_paths(self.inputs_schema, inputs)

    def session_name(self, inputs: Mapping[str, Any]) -> str:
        """Return what to call the session that a run with these inputs leaves open."""
        return self.name

    def complete_inputs(self, inputs: Mapping[str, Any], principal: Principal) -> Mapping[str, Any]:
        """Return valid inputs with what rows of the caller add to them; asked once, at submit.

        Raises:
            InvalidInput: They name what the caller does not have.
        """
        return inputs

    @abstractmethod
    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return every step of a run with these inputs, in order."""

    @abstractmethod
    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Do one step and return its output; raises ToolFailed."""

    @abstractmethod
    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return what the run amounts to; called when no step is left to do."""

    def next_step(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> StepPlan | None:
        """Return a step to append when all that were planned are over, or None: the run concludes.

        For templates that find out what to do while they do it. It is written with what the step
        before left, so the same journal has to lead to the same answer.
        """
        return None

    def skip_reason(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> str:
        """Return why the steps that are left need not be done, or "" where they do; asked between
        the steps of templates that share a page.
        """
        return ""

    def uses_shared_page(self, step_input: Mapping[str, Any]) -> bool:
        """Tell whether a step with this input works on the page that steps share, where the
        template has one: only then is the page brought back for it, and by it.
        """
        return True

    def starts_before_commit(self, step_input: Mapping[str, Any]) -> bool:
        """Tell whether a step may begin while that is written: one that changes nothing."""
        return False

    def first_call(
        self, step_input: Mapping[str, Any], inputs: Mapping[str, Any]
    ) -> StepCall | None:
        """Return the call with which a step begins for sure: it is told together with the step."""
        return None

    def step_limit_ms(self, step_input: Mapping[str, Any]) -> int:
        """Return how long a step with this input may take."""
        return self.step_timeout_ms

    def needs_browser(self, step_input: Mapping[str, Any]) -> bool:
        """Tell whether a step with this input works with a browser, where the template has one."""
        return self.uses_browser

    def concurrency(self, inputs: Mapping[str, Any]) -> int:
        """Return how many steps may be under way at once."""
        return 1

    def shares_steps(self, inputs: Mapping[str, Any]) -> bool:
        """Tell whether idle workers may take steps of such a run; none of effect `once` then."""
        return False

    def prefers_sync(self, inputs: Mapping[str, Any]) -> bool:
        """Tell whether mode auto should wait for the result of a run with these inputs."""
        return True

    def describe(self) -> dict[str, Any]:
        """Return the template as `list_task_templates` shows it."""
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
