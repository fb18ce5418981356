"""What the agent's loop needs of a run: its journal of steps, and the context of a step.

Output keys of the steps, besides those that the model gets: `timesGivenBack`, how many takeovers of
the page had ended when the step read it; `today`, in the first turn, the date at submit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from runners.actions.catalogue import TASK_START
from runners.invocation.fallback import RemoteCall
from runners.tools.base import Effect, ToolResult
from runs.agent.history import HistoryMessage
from runs.models import Run

Value = TypeVar("Value")
TURN, CALL, PAGE, SUMMARY = "turn", "call", "page", "summary"  # the kinds of steps
OPENING = 0  # the turn of the steps before the model's first one, which open startUrl
TAKEOVERS_ENDED = "timesGivenBack"
TODAY = "today"


class JournalEntry(Protocol):
    """A step in the journal (`runs.task_templates.base.StepView` is one)."""

    @property
    def input(self) -> Mapping[str, Any]:
        """The planned input."""

    @property
    def succeeded(self) -> bool:
        """Whether the step ended without an error."""

    @property
    def output(self) -> Mapping[str, Any] | None:
        """The output, once the step ended."""

    @property
    def error(self) -> Mapping[str, Any] | None:
        """The error of a failed step."""


Journal = Sequence[JournalEntry]


@dataclass(frozen=True, slots=True)
class NextStep:
    """The step to append to the run."""

    name: str
    input: Mapping[str, Any]
    effect: Effect = Effect.READ


class AgentContext(Protocol):
    """The part of `runs.task_templates.base.StepContext` that the agent uses; documented there."""

    @property
    def is_resumed(self) -> bool:
        """Whether the step was suspended for a person and now runs again."""

    @property
    def attempt_number(self) -> int:
        """The number of this attempt; 1 is the first."""

    def attempt(
        self,
        tool: str,
        args: Mapping[str, Any],
        *,
        target_id: str | None = None,
        timeout_ms: int | None = None,
        remote: RemoteCall | None = None,
    ) -> Awaitable[ToolResult]:
        """Authorize and call a tool; with `remote`, on a runner. Return its result or failure."""

    def query_run(self, query: Callable[[Run], Value]) -> Awaitable[Value]:
        """Run a database query about the run in a thread, and return its value."""

    def emit(self, type_: str, data: Mapping[str, Any]) -> None:
        """Write an event to the run's log."""

    def message_history(self) -> Awaitable[Sequence[HistoryMessage]]:
        """Return the messages of the run's task before its own."""

    def check_lease(self) -> Awaitable[None]:
        """Return if the run was not canceled; else stop the run on this worker."""

    def ask_user(self, question: str, suggestions: Sequence[str] = ()) -> str | None:
        """Ask the user; None if there was no answer in time."""

    def store_output(self, output: Any) -> Awaitable[str]:
        """Store an output whole as an artifact; return its artifactId."""

    def read_stored_chunk(
        self, artifact_id: str, *, offset: int, limit: int
    ) -> Awaitable[dict[str, Any]]:
        """Return a chunk of one of the run's artifacts, or {error}."""


def opens_start_url(inputs: Mapping[str, Any]) -> bool:
    """Return whether the run itself opens startUrl: if the agent may open pages."""
    return bool(inputs.get("startUrl")) and TASK_START.name in inputs.get("tools", ())


def turns_of(journal: Journal) -> list[JournalEntry]:
    """Return the model's turns, in order."""
    return [entry for entry in journal if entry.input["kind"] == TURN]


def calls_since(journal: Journal, turn: int) -> dict[str, JournalEntry]:
    """Return the calls that a turn requested and that were made, by tool call id."""
    return {
        str(entry.input["toolCallId"]): entry
        for entry in journal
        if entry.input["kind"] == CALL and entry.input["turn"] == turn
    }


def known_takeovers_ended(journal: Journal) -> int:
    """Return how many takeovers had ended when the page was last read for the model: before its
    last turn, because what is read between the calls of a turn comes with the next one.
    """
    turns = [at for at, entry in enumerate(journal) if entry.input["kind"] == TURN] or [-1]
    outputs = [entry.output or {} for entry in journal[: turns[-1] + 1]]
    known = [output[TAKEOVERS_ENDED] for output in outputs if TAKEOVERS_ENDED in output]
    return int(known[-1]) if known else 0


def newest_summary(journal: Journal) -> Mapping[str, Any] | None:
    """Return {summary, upTo} of the newest summary of old turns, or None."""
    outputs = [entry.output or {} for entry in journal if entry.input["kind"] == SUMMARY]
    return next((output for output in reversed(outputs) if output.get("summary")), None)


def today_in(journal: Journal) -> str:
    """Return the date that the first turn recorded, or ""."""
    return next((str(turn.output.get(TODAY, "")) for turn in turns_of(journal) if turn.output), "")


def pages_of(journal: Journal, turn: int) -> dict[str, JournalEntry]:
    """Return the steps that read the page after calls of a turn, by the id of the call.

    A step of an earlier version has no such id; it follows the last call of its turn.
    """
    last_call, pages = "", dict[str, JournalEntry]()
    for entry in journal:
        if entry.input.get("turn") != turn:
            continue
        if entry.input["kind"] == CALL:
            last_call = str(entry.input["toolCallId"])
        elif entry.input["kind"] == PAGE:
            pages[str(entry.input.get("after", last_call))] = entry
    return pages
