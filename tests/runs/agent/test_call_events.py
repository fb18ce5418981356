"""Test that the log of a task has the end of each call of a tool."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from runners.actions.typed_text import hide_typed_text
from runners.errors import PageLost
from runs.agent.loop import do_call
from runs.task_templates.base import StepContext, StepPlan
from runs.task_templates.builtin.session_action import SessionAction

CLICK = {"tool": "browser_click", "args": {"tabId": 1, "clickId": 7}, "toolCallId": "c1"}


class LostPage:
    """The context of a step that a person was asked about, and whose page was lost meanwhile."""

    is_resumed = True
    inputs: Mapping[str, Any] = {"action": CLICK["tool"], "args": CLICK["args"]}

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []

    def emit(self, _type: str, data: Mapping[str, Any]) -> None:
        self.events.append(data)

    async def query_run(self, _query: object) -> int:
        raise PageLost("The page was lost.")


def test_a_call_of_an_agent_that_ends_its_step_has_an_end_event() -> None:
    ctx = LostPage()
    step = {**CLICK, "kind": "call", "turn": 1}
    with pytest.raises(PageLost):
        asyncio.run(do_call(step, {}, [], cast(StepContext, ctx)))
    check_end(ctx)


def test_an_action_of_a_host_that_ends_its_step_has_an_end_event() -> None:
    ctx, step = LostPage(), StepPlan("browser_click", {"kind": "action"})
    with pytest.raises(PageLost):
        asyncio.run(SessionAction().do_step(step, cast(StepContext, ctx)))
    check_end(ctx)


def check_end(ctx: LostPage) -> None:
    (end,) = ctx.events
    assert (end["phase"], end["ok"], end["errorCode"]) == ("end", False, PageLost.code)


def test_typed_text_is_hidden_in_what_hosts_steps_and_turns_record() -> None:
    args = {"tabId": 1, "text": "hunter22"}
    typed = {"tabId": 1, "text": "(8 characters)"}
    for field in ("action", "tool", "name"):
        recorded = {"calls": [{field: "browser_type", "args": args}]}
        assert hide_typed_text(recorded) == {"calls": [{field: "browser_type", "args": typed}]}
    other = {"tool": "browser_find_text", "args": args}
    assert hide_typed_text(other) == other
