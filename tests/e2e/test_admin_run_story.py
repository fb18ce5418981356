"""An agent's run and the form of a new run in a real Chromium."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runs.conversations.log import append_events
from runs.lifecycle.changes import NewEvent
from runs.models import Run, RunStep
from tests.e2e.test_admin_chat import open_task
from tests.support.admin.visitor import Visitor

PICTURE = b"\x89PNG\r\n\x1a\n"
MakeTask = Callable[..., str]


@pytest.fixture
def agent_run(make_run_with_steps: Callable[..., Run], make_artifact: Callable[..., str]) -> Run:
    """A run of an agent with four steps and pictures of the second and the fourth."""
    run = make_run_with_steps(["succeeded"] * 4, status="succeeded", template_id="agent_task")
    for number, kind in enumerate(("turn", "page", "turn", "page")):
        output = {"content": f"I look, **{number}**", "calls": [], "observation": {"title": "Shop"}}
        columns = {"input": {"kind": kind, "turn": 1}, "output": output, "name": kind}
        RunStep.objects.filter(run=run, index=number).update(**columns)
    for index in (1, 3):
        make_artifact(PICTURE, run_id=run.id, step_index=index, mime_type="image/png")
    return run


def count(visitor: Visitor) -> str:
    """Return which moment the player shows: `2 / 4`."""
    return visitor.texts("[data-player-count]")[0]


def press(visitor: Visitor, key: str) -> None:
    visitor.do(visitor.page.keyboard.press(key))


@pytest.mark.slow
def test_a_run_is_replayed_with_buttons_and_keys(visitor: Visitor, agent_run: Run) -> None:
    visitor.open(f"/admin/runs/run/{agent_run.id}/change/")
    visitor.wait_for("[data-run-log] strong >> text=0")
    assert count(visitor) == "4 / 4"
    for key, shown in (("j", "1 / 4"), ("j", "2 / 4"), ("k", "1 / 4")):
        press(visitor, key)
        assert count(visitor) == shown
    visitor.wait_for("[data-player-blank]:not([hidden])")  # there was no picture yet
    visitor.click("[data-player-go='1']")
    visitor.wait_for("[data-player-link]:not([hidden])")
    assert visitor.texts(".cty-step[data-now] .cty-step-number") == ["2"]
    press(visitor, "o")
    visitor.wait_for("#step-2[open] .cty-pre")
    press(visitor, "p")
    visitor.wait_for("[data-player-count] >> text=4 / 4")


@pytest.mark.slow
def test_a_table_is_rendered_while_it_streams(visitor: Visitor, make_task: MakeTask) -> None:
    task_id = make_task("say hi")
    run_id = Run.objects.get().id
    open_task(visitor, task_id)

    def stream(content: str, **more: Any) -> None:
        data = {"runId": run_id, "content": content, **more}
        append_events(task_id, [NewEvent("chatDelta", data)])

    stream("Prices of **both**:\n\n| chair | pri")
    visitor.wait_for("[data-growing] strong >> text=both")
    stream("ce |\n|---|--:|\n| Windsor | 120 |\n")
    visitor.wait_for("[data-growing] .chat-table td >> text=120")
    stream("| Bistro | 89 |", finished=True)
    visitor.wait_for(".chat-table td >> text=89")
    assert visitor.texts(".chat-table tr") == ["chair\tprice", "Windsor\t120", "Bistro\t89"]
    assert visitor.texts("[data-growing]") == []


@pytest.mark.slow
def test_rows_are_added_and_removed_and_the_first_error_gets_the_focus(visitor: Visitor) -> None:
    visitor.open("/admin/runs/run/new/call_tools/")
    visitor.click("[data-add-row]")
    visitor.click("[data-row] >> nth=0 >> [data-remove-row]")
    visitor.fill("[name='inputs.calls.10001.name']", "read_file")
    visitor.click("[name='inputs.calls.10001.timeoutMs']")
    visitor.fill("[name='inputs.calls.10001.timeoutMs']", "0")
    visitor.click("button[type=submit]:has-text('Submit run')")
    visitor.wait_for("[name='inputs.calls.0.timeoutMs'][aria-invalid=true]:focus")
    assert visitor.do(visitor.page.input_value("[name='inputs.calls.0.name']")) == "read_file"
    assert Run.objects.count() == 0
