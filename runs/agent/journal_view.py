"""What the agent's loop reads in the journal of its run.

Output keys of the steps, besides those that the model gets: `timesGivenBack`, how many takeovers of
the page had ended when the step read it; `today`, in the first turn, the date at submit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runners.actions.catalogue import TASK_START
from runs.steps import StepView

TURN, CALL, PAGE, SUMMARY = "turn", "call", "page", "summary"  # the kinds of steps
OPENING = 0  # the turn of the steps before the model's first one, which open startUrl
TAKEOVERS_ENDED = "timesGivenBack"
TODAY = "today"
Journal = Sequence[StepView]


def opens_start_url(inputs: Mapping[str, Any]) -> bool:
    """Return whether the run itself opens startUrl: if the agent may open pages."""
    return bool(inputs.get("startUrl")) and TASK_START.name in inputs.get("tools", ())


def turns_of(journal: Journal) -> list[StepView]:
    """Return the model's turns, in order."""
    return [entry for entry in journal if entry.input["kind"] == TURN]


def calls_since(journal: Journal, turn: int) -> dict[str, StepView]:
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


def pages_of(journal: Journal, turn: int) -> dict[str, StepView]:
    """Return the steps that read the page after calls of a turn, by the id of the call.

    A step of an earlier version has no such id; it follows the last call of its turn.
    """
    last_call, pages = "", dict[str, StepView]()
    for entry in journal:
        if entry.input.get("turn") != turn:
            continue
        if entry.input["kind"] == CALL:
            last_call = str(entry.input["toolCallId"])
        elif entry.input["kind"] == PAGE:
            pages[str(entry.input.get("after", last_call))] = entry
    return pages
