"""Event types: those in the docs, those that the API contract accepts, those that tools emit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from decisions.foundation.validation.json_schema import check, compile_schema
from runs.api.schemas.runs import EVENT
from runs.calls.attempt import StepAttempt
from runs.events.types import EVENT_TYPES, FINAL, EventType
from runs.models import TERMINAL, Run

ROOT = Path(__file__).parents[3]


def test_the_docs_list_exactly_the_event_types() -> None:
    rows = re.findall(r"^\| `([a-zA-Z_.]+)` \|", (ROOT / "docs/events.md").read_text(), re.M)
    types = [name for name in rows if name not in ("seq", "type", "at", "data")]
    assert sorted(types) == sorted(EVENT_TYPES)


def test_the_demo_shows_only_existing_event_types() -> None:
    shown = json.loads((ROOT / "runs/operations/demo/pages/data/events.json").read_text())
    assert {row["type"] for row in shown} <= EVENT_TYPES


@pytest.mark.parametrize("type_", sorted(EVENT_TYPES))
def test_the_contract_accepts_every_event_type(type_: str) -> None:
    check(compile_schema(EVENT), {"seq": 1, "type": type_, "at": 0, "data": {}})


def test_every_terminal_status_has_a_final_event() -> None:
    assert {f"run.{status}" for status in TERMINAL} == FINAL


def test_a_tool_can_emit_only_known_event_types() -> None:
    emitted: list[Any] = []
    step = StepAttempt(
        run=Run(id="run_x"),
        index=3,
        on_run_thread=lambda f: f(),
        add_event=emitted.append,
        deadline=0.0,
    )
    step.emit(EventType.TOOL_UPDATE, {"line": "x"})
    with pytest.raises(ValueError, match=r"unknown event type 'tool.shout'"):
        step.emit("tool.shout", {})
    assert [(event.type, event.data) for event in emitted] == [
        ("tool.update", {"step": 3, "line": "x"})
    ]
