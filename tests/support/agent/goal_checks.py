"""Checks for a goal that spans several pages, whichever API or transport submitted it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from artifacts.models import Artifact
from runs.models import Run
from tests.support.agent.browsing_model import SEARCH_TERM
from tests.support.browser.page_server import PageServer

GOAL = "Search the catalogue for the chair, and tell how many there are."
OUTPUT = {"count": 7}
Event = Mapping[str, Any]


def check_reached(run: Run, server: PageServer, *, output: Any = OUTPUT) -> None:
    """Check that the run reached the goal and visited every page once.

    `output` is None if the goal requested no structured output.
    """
    assert run.status == "succeeded", run.error
    assert run.result is not None
    assert run.result["answer"] == "There are 7 chairs."
    assert run.result.get("output") == output
    verified = run.result["verification"]
    expected = None if output is None else True
    assert (verified["pass"], verified["missingFields"]) == (expected, [])
    assert [server.hits[path] for path in ("/start", "/catalogue", "/found", "/chair")] == [1] * 4
    artifacts = Artifact.objects.filter(run_id=run.id)
    # One after each call that may have changed the page: four that opened one, and the typing.
    assert artifacts.filter(kind="screenshot").count() == 5
    assert artifacts.filter(kind="result").count() == 1


def check_events(events: Sequence[Event], *, output: Any = OUTPUT) -> None:
    """Check that the events have no gaps and list the tool calls in order of execution."""
    seqs = [event["seq"] for event in events]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
    assert "I open the shop." in "".join(_data(events, "chatDelta", "content"))
    types = [event["type"] for event in events]
    assert types.index("statusUpdate") < types.index("chatDelta") < types.index("toolUsed")
    tool_events = [event["data"] for event in events if event["type"] == "toolUsed"]
    phases = [(event["phase"], event["tool"], event["toolCallId"]) for event in tool_events]
    assert [tool for _, tool, _ in phases[::2]] == [
        "task_start",
        "browser_dom_index",
        "browser_click",
        "browser_dom_index",
        "browser_type",
        "browser_click",
        "browser_dom_index",
        "browser_click",
    ]
    for start, end in zip(phases[::2], phases[1::2], strict=True):
        assert (start[0], end) == ("start", ("end", *start[1:]))
    # Do not require that each call succeeded: on a slow machine an action may time out although it
    # took effect; the model receives the timeout. `check_reached` checks the effect.
    assert SEARCH_TERM not in str(tool_events)
    last_used = len(types) - 1 - types[::-1].index("toolUsed")
    assert last_used < types.index("run.succeeded")
    outputs = [event["data"] for event in events if event["type"] == "structuredOutput"]
    assert [(output["status"], output["output"]) for output in outputs] == (
        [("ok", output)] if output else []
    )
    if output:
        assert last_used < types.index("structuredOutput") < types.index("run.succeeded")


def _data(events: Sequence[Event], type_: str, name: str) -> list[Any]:
    return [event["data"].get(name, "") for event in events if event["type"] == type_]
