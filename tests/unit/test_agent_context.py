"""Messages that the agent builds from a journal, and the check of its output."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runners.tools.base import Effect
from runs.agent.answer_check import verify_output
from runs.agent.history import HistoryMessage
from runs.agent.loop import next_step
from runs.agent.prompt import WHOLE_RESULTS, build_messages
from runs.task_templates.base import StepView

INPUTS = {"goal": "Do it.", "tools": []}
SCHEMA = {
    "type": "object",
    "required": ["name", "count"],
    "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
}


def turn(number: int, *calls: dict[str, Any]) -> StepView:
    """Return the step of a model turn that requested tool calls."""
    usage = {"inputTokens": 1, "outputTokens": 1, "costUsd": None}
    said = {"content": "", "stop": "tool_calls", "usage": usage, "calls": list(calls)}
    return StepView(number, "turn", {"kind": "turn", "turn": number}, True, said, None)


def asked(id_: str, **args: Any) -> dict[str, Any]:
    return {"id": id_, "name": "read_file", "args": args}


def call(turn_: int, id_: str, output: dict[str, Any] | None, **error: Any) -> StepView:
    """Return the step of a tool call that a turn requested."""
    told = {"kind": "call", "turn": turn_, "tool": "read_file", "args": {}, "toolCallId": id_}
    return StepView(0, "call", told, not error, output, error or None, Effect.READ)


def long_journal(turns: int) -> list[StepView]:
    """Return turns that each have a long argument and a long result."""
    lines = []
    for n in range(1, turns + 1):
        lines.append(turn(n, asked(f"c{n}", path="p" * 1000)))
        lines.append(call(n, f"c{n}", {"ok": True, "result": {"text": f"{n} " * 2000}}))
    return lines


def size(messages: list[Any]) -> int:
    calls = (one for message in messages for one in message.tool_calls)
    return sum(len(m.content) for m in messages) + sum(len(str(one.arguments)) for one in calls)


def test_a_short_conversation_is_sent_in_full() -> None:
    told = build_messages(INPUTS, long_journal(3), size=300_000)
    assert [message.role for message in told] == ["system", "user", *["assistant", "tool"] * 3]
    assert not any("shortened" in message.content for message in told)


def test_a_long_conversation_has_its_old_results_shortened_and_the_latest_sent_in_full() -> None:
    told = build_messages(INPUTS, long_journal(30), size=36_000)
    results = [message.content for message in told if message.role == "tool"]
    assert size(told) <= 36_000
    assert all("shortened" in one for one in results[:10])
    assert not any("shortened" in one for one in results[-WHOLE_RESULTS:])
    assert all(json.loads(one)["toolCallId"] == f"c{n}" for n, one in enumerate(results, 1))


def test_every_call_has_a_result_even_a_lost_or_refused_one() -> None:
    lost = {"errorCode": "STEP_EXECUTION_FAILED", "message": "m", "details": {"effect": "unknown"}}
    refused = {**asked("c2"), "refused": "no such tool"}
    journal = [turn(1, asked("c1"), refused), call(1, "c1", None, **lost)]
    told = [
        json.loads(one.content)
        for one in build_messages(INPUTS, journal, size=30_000)
        if one.role == "tool"
    ]
    assert [(one["toolCallId"], one["ok"]) for one in told] == [("c1", False), ("c2", False)]
    assert told[0]["error"]["details"] == {"effect": "unknown"}


def test_calls_of_a_turn_run_in_order_before_the_next_turn() -> None:
    journal = [turn(1, asked("a"), {**asked("x"), "refused": "broken"}, asked("b"))]
    first = next_step(INPUTS, journal)
    second = next_step(INPUTS, [*journal, call(1, "a", {"ok": True})])
    after = next_step(INPUTS, [*journal, call(1, "a", {"ok": True}), call(1, "b", None, m="x")])
    assert [step and step.input.get("toolCallId") for step in (first, second)] == ["a", "b"]
    assert after is not None
    assert after.input == {"kind": "turn", "turn": 2}


@pytest.mark.parametrize(
    ("output", "score", "missing", "mismatched"),
    [
        ({"name": "a", "count": 1}, 1.0, [], 0),
        ({"name": "a"}, 0.5, ["count"], 0),
        ({"name": 5, "count": "x"}, 0.0, [], 2),
        ({"name": "a", "count": "x"}, 0.5, [], 1),
        ("words", 0.0, [], 1),
        (None, 0.0, [], 1),
    ],
)
def test_an_output_is_scored_by_its_fields(
    output: Any, score: float, missing: list[str], mismatched: int
) -> None:
    verdict = verify_output(output, SCHEMA)
    assert (verdict["score"], verdict["missingFields"]) == (score, missing)
    assert len(verdict["typeMismatches"]) == mismatched
    assert verdict["pass"] == (score == 1.0)


def test_a_conversation_starts_with_a_user_message() -> None:
    before = [
        HistoryMessage("user", "x" * 5000),
        HistoryMessage("assistant", "Yes."),
        HistoryMessage("user", "And?"),
    ]
    told = build_messages(INPUTS, [], history=before, size=9000)
    assert [(one.role, one.content) for one in told[1:]] == [("user", "And?"), ("user", "Do it.")]


def test_the_latest_results_are_shortened_when_nothing_else_fits() -> None:
    lines = [turn(1, *(asked(f"c{n}", path="p" * 50_000) for n in range(3)))]
    lines += [call(1, f"c{n}", {"ok": True, "result": "r" * 20_000}) for n in range(3)]
    told = build_messages(INPUTS, lines, size=20_000)
    assert size(told) <= 20_000
    assert [message.role for message in told][2:] == ["assistant", "tool", "tool", "tool"]


def test_a_shortened_page_result_keeps_its_artifact_id() -> None:
    lines = long_journal(8)
    page = {"ok": True, "result": {"preview": "x" * 9000}, "artifactId": "art_page"}
    lines.insert(2, StepView(9, "page", {"kind": "page", "turn": 1}, True, page, None))
    told = build_messages(INPUTS, lines, size=20_000)
    first = json.loads(next(one.content for one in told if one.role == "tool"))
    assert "shortened" in first
    assert first["page"] == {"artifactId": "art_page"}
