"""An agent's run as a conversation, with its pictures, its refused calls and what it cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs.models import Run, RunStep

EVIL = '"><svg onload=alert(1)>'
USAGE = {"inputTokens": 2400, "outputTokens": 120, "costUsd": 0.0042}


def turn(number: int, content: str = "", **output: Any) -> dict[str, Any]:
    """Return the columns of a turn of the model."""
    reply = {"content": content, "stop": "stop", "usage": USAGE, "calls": [], **output}
    return {"name": f"turn {number}", "input": {"kind": "turn", "turn": number}, "output": reply}


def call(tool: str, args: dict[str, Any], output: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a call."""
    step = {"kind": "call", "turn": 1, "tool": tool, "args": args, "toolCallId": "c"}
    return {"name": tool, "input": step, "output": output}


STEPS = [
    turn(1, f"I **open** the shop. {EVIL}"),
    call("task_start", {"url": "http://shop.example/", "tabId": 7}, {"ok": True}),
    {
        "name": "page",
        "input": {"kind": "page", "turn": 1, "tabId": 7},
        "output": {"ok": True, "observation": {"url": "http://shop.example/", "title": "Shop"}},
    },
    turn(2, calls=[{"name": "rm", "args": {"path": "/"}, "refused": "no tool rm", "code": "E_X"}]),
    call("browser_type", {"clickId": 1, "text": "hunter2"}, {"ok": True}),
    call("browser_click", {"clickId": 9}, {"ok": False, "error": {"code": "GONE", "message": "x"}}),
    turn(3, completion={"answer": "| a | b |\n|---|---|\n| 1 | 2 |"}),
]


@pytest.fixture
def agent_run(make_run: Callable[..., Run]) -> Run:
    """A run of an agent that has ended with an answer."""
    answer = {"answer": "## Buy it", "usage": {"turns": 3}, "verification": {"pass": None}}
    run = make_run(
        template_id="agent_task",
        status="succeeded",
        inputs={"goal": "Find a chair", "tools": []},
        result=answer,
        result_summary="## Buy it",
        total_steps=len(STEPS),
    )
    for index, columns in enumerate(STEPS):
        start = run.created_at + timedelta(seconds=index)
        RunStep.objects.create(
            run=run,
            index=index,
            effect="read",
            effect_key=f"{run.id}:{index}",
            status="succeeded",
            started_at=start,
            ended_at=start + timedelta(milliseconds=500),
            **columns,
        )
    return run


def page_of(client: Client, run: Run, part: str = "change") -> str:
    """Return the text of the run's page or of a part of it."""
    response = client.get(f"/admin/runs/run/{run.id}/{part}/")
    assert response.status_code == 200
    return response.content.decode()


def test_the_run_is_a_conversation(superuser_client: Client, agent_run: Run) -> None:
    page = page_of(superuser_client, agent_run)
    talk = page.split("data-run-log")[1].split("</section>")[0]
    texts = ("Find a chair", "I **open** the shop.", "task_start", "Shop", "rm", "| a | b |")
    assert [talk.count(text) > 0 for text in texts] == [True] * len(texts)
    assert sorted(talk.index(text) for text in texts) == [talk.index(text) for text in texts]
    assert "<svg" not in page


def test_a_refused_call_is_red_with_its_reason(superuser_client: Client, agent_run: Run) -> None:
    page = page_of(superuser_client, agent_run)
    refused = page.split('<div class="run-call" data-tone="failed"')[1].split("</div>")[0]
    for text in ("rm", "refused", "E_X", "no tool rm"):
        assert text in refused
    timeline = page.split('id="step-4"')[1].split("</summary>")[0]
    assert 'data-tone="failed"' in timeline
    assert "rm refused" in timeline


def test_a_failed_call_is_red_and_typed_text_is_not_shown(
    superuser_client: Client, agent_run: Run
) -> None:
    talk = page_of(superuser_client, agent_run).split("data-run-log")[1].split("</section>")[0]
    assert "hunter2" not in talk
    assert "(7 characters)" in talk
    failed = talk.split("browser_click")[0].rsplit("<details", 1)[1]
    assert 'data-tone="failed"' in failed
    assert "GONE" in talk


def test_tokens_and_cost_are_figures(superuser_client: Client, agent_run: Run) -> None:
    page = page_of(superuser_client, agent_run)
    for figure in ("<b>3</b>", "<b>7,200</b>", "<b>360</b>", "<b>$0.0126</b>"):
        assert figure in page
    RunStep.objects.filter(run=agent_run, index=0).update(
        output={**STEPS[0]["output"], "usage": {**USAGE, "costUsd": None}}
    )
    assert "≥ $0.0084" in page_of(superuser_client, agent_run)


def test_the_answer_is_rendered_as_markdown(superuser_client: Client, agent_run: Run) -> None:
    page = page_of(superuser_client, agent_run)
    assert '<div class="run-markdown" data-markdown>## Buy it</div>' in page
    assert 'class="cty-summary"' not in page


def moments_of(page: str) -> list[dict[str, Any]]:
    """Return the moments of the player."""
    text = page.split('<script id="run-moments" type="application/json">')[1]
    moments: list[dict[str, Any]] = json.loads(text.split("</script>")[0])
    return moments


def test_each_moment_of_the_replay_has_the_page_as_it_was(
    superuser_client: Client, agent_run: Run, make_artifact: Callable[..., str]
) -> None:
    assert "data-player" not in page_of(superuser_client, agent_run)
    picture = {"mime_type": "image/png", "kind": "screenshot", "run_id": agent_run.id}
    first = make_artifact(b"1", step_index=2, name="a.png", **picture)
    second = make_artifact(b"2", step_index=5, name="b.png", **picture)
    moments = moments_of(page_of(superuser_client, agent_run))
    assert [moment["step"] for moment in moments] == [1, 2, 3, 4, 5, 6, 7]
    shown = [moment["picture"].split("/")[-3] if moment["picture"] else "" for moment in moments]
    assert shown == ["", "", first, first, first, second, second]
    around = page_of(superuser_client, agent_run, part="steps/4")
    assert (first in around, second in around) == (True, True)


def test_steps_on_pages_of_their_own_show_no_picture_of_another_step(
    superuser_client: Client,
    make_run_with_steps: Callable[..., Run],
    make_artifact: Callable[..., str],
) -> None:
    run = make_run_with_steps(["failed"] * 3, status="failed", template_id="batch_extract_pages")
    make_artifact(b"1", run_id=run.id, step_index=1, mime_type="image/png")
    assert [moment["step"] for moment in moments_of(page_of(superuser_client, run))] == [2]


def test_pictures_need_the_permission_to_view_artifacts(
    staff_client: Callable[..., Client], agent_run: Run, make_artifact: Callable[..., str]
) -> None:
    picture = make_artifact(b"1", run_id=agent_run.id, step_index=2, mime_type="image/png")
    client = staff_client("runs.view_run")
    for part in ("change", "live", "steps/4"):
        assert picture not in page_of(client, agent_run, part=part)


def test_a_conversation_of_any_length_costs_as_many_queries(
    superuser_client: Client, agent_run: Run
) -> None:
    page_of(superuser_client, agent_run)
    with CaptureQueriesContext(connection) as few:
        page_of(superuser_client, agent_run)
    row = RunStep.objects.filter(run=agent_run, index=1).get()
    RunStep.objects.bulk_create(
        RunStep(
            **{name: getattr(row, name) for name in ("run", "name", "effect", "input", "status")},
            output=row.output,
            index=index,
            effect_key=str(index),
        )
        for index in range(10, 80)
    )
    with CaptureQueriesContext(connection) as many:
        page_of(superuser_client, agent_run)
    assert len(many) == len(few) <= 22
