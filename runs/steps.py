"""Steps of a run as templates and the agent see them: planned, ended, and what one may use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from runners.invocation.fallback import RemoteCall
from runners.tools.base import Effect, ToolResult
from runs.models import Run

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
class HistoryMessage:
    """An earlier message of the task; role is user, assistant or tool."""

    role: str
    content: str


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
