"""What the agent sees of a run: its journal, and what a step may use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from runners.invocation.fallback import Elsewhere
from runners.tools.base import Effect, ToolResult
from runs.agent.history import HistoryMessage
from runs.models import Run

Found = TypeVar("Found")
TURN, CALL, PAGE = "turn", "call", "page"  # the kinds of steps
TAKEOVERS_ENDED = "timesGivenBack"  # of an output: how often a person had, when the page was seen


class JournalEntry(Protocol):
    """A line of the journal."""

    @property
    def input(self) -> Mapping[str, Any]:
        """What was planned."""

    @property
    def succeeded(self) -> bool:
        """Whether it is over, and well."""

    @property
    def output(self) -> Mapping[str, Any] | None:
        """What it left."""

    @property
    def error(self) -> Mapping[str, Any] | None:
        """Why it failed."""


Journal = Sequence[JournalEntry]


@dataclass(frozen=True, slots=True)
class NextStep:
    """A step to come."""

    name: str
    input: Mapping[str, Any]
    effect: Effect = Effect.READ


class AgentContext(Protocol):
    """What a step may use (`runs.task_templates.base.StepContext` is more)."""

    @property
    def is_resumed(self) -> bool:
        """Whether the step stopped for a person before."""

    @property
    def attempt_number(self) -> int:
        """Which try of the step this is."""

    def attempt(
        self,
        tool: str,
        args: Mapping[str, Any],
        *,
        target_id: str | None = None,
        remote: Elsewhere | None = None,
    ) -> Awaitable[ToolResult]:
        """Call a tool, policy first; `elsewhere`: a runner performs it."""

    def query_run(self, look: Callable[[Run], Found]) -> Awaitable[Found]:
        """Return what a function finds out about the run, where the database may be asked."""

    def emit(self, type_: str, data: Mapping[str, Any]) -> None:
        """Tell an event."""

    def message_history(self) -> Awaitable[Sequence[HistoryMessage]]:
        """Return what was said in the run's task before its message."""

    def ask_user(self, question: str, suggestions: Sequence[str] = ()) -> str | None:
        """Ask whoever handed the run in."""

    def store_output(self, output: Any) -> Awaitable[str]:
        """Keep what a call answered as an artifact."""

    def read_stored_chunk(
        self, artifact_id: str, *, offset: int, limit: int
    ) -> Awaitable[dict[str, Any]]:
        """Read a chunk of what the run kept; {error} where there is none."""

    def seconds_left(self) -> float:
        """Return the seconds until the step's deadline."""


def turns_of(journal: Journal) -> list[JournalEntry]:
    """Return the model's turns, in order."""
    return [line for line in journal if line.input["kind"] == TURN]


def calls_since(journal: Journal, turn: int) -> dict[str, JournalEntry]:
    """Return the calls that were made for a turn, by their ids."""
    return {
        str(line.input["toolCallId"]): line
        for line in journal
        if line.input["kind"] == CALL and line.input["turn"] == turn
    }


def known_takeovers_ended(journal: Journal) -> int:
    """Return how often a person had given back the page when the model was told of it last."""
    outputs = [line.output or {} for line in journal]
    known = [output[TAKEOVERS_ENDED] for output in outputs if TAKEOVERS_ENDED in output]
    return int(known[-1]) if known else 0


def pages_of(journal: Journal) -> dict[int, JournalEntry]:
    """Return what was found of the page, by the turns that it was looked at after."""
    return {int(line.input["turn"]): line for line in journal if line.input["kind"] == PAGE}
