"""The status of a task in the list and on its page says who is to move."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from decisions.identity.principals import Principal
from runs.agent.call_events import refused_event_data
from runs.conversations.log import append_events
from runs.lifecycle.changes import NewEvent
from runs.models import Run, Task

SUSPENDED = {"status": "running", "ready": False}


@pytest.fixture
def make_task_row(principal: Principal, make_run: Callable[..., Run]) -> Callable[..., Task]:
    """Insert a task with a status and runs, each given as columns."""

    def make(status: str, *runs: dict[str, Any]) -> Task:
        now = datetime.now(UTC)
        task = Task.objects.create(
            id="task_1",
            tenant_id=principal.tenant_id,
            workspace_id=principal.workspace_id,
            principal_id=principal.id,
            trust="local",
            title="Compare prices",
            status=status,
            messages_count=len(runs),
            created_at=now,
            updated_at=now,
            taken_over_at=now if status == "takeover" else None,
        )
        for columns in runs:
            make_run(task_id=task.id, **columns)
        return task

    return make


@pytest.mark.parametrize(
    ("status", "runs", "label"),
    [
        ("created", [], "no message yet"),
        ("running", [{"status": "queued"}], "waits for a worker"),
        ("running", [{"status": "running"}], "agent works"),
        ("running", [{"status": "running"}, {"status": "queued", "ready": False}], "agent works"),
        ("ongoing", [{**SUSPENDED, "waiting_for": {"type": "answer"}}], "your turn: answer"),
        ("ongoing", [{**SUSPENDED, "waiting_for": {"type": "confirmation"}}], "your turn: decide"),
        ("takeover", [{**SUSPENDED, "waiting_for": {"type": "takeover"}}], "a person has the page"),
        ("completed", [{"status": "failed"}, {"status": "succeeded"}], "answered"),
        ("ongoing", [{"status": "succeeded"}], "answered"),
        ("error", [{"status": "failed"}], "failed"),
        ("completed", [{"status": "canceled"}], "stopped"),
    ],
)
def test_the_status_says_who_is_to_move(
    superuser_client: Client,
    make_task_row: Callable[..., Task],
    status: str,
    runs: list[dict[str, Any]],
    label: str,
) -> None:
    make_task_row(status, *runs)
    for page in ("", "task_1/change/"):
        assert (
            f">{label}</span>" in superuser_client.get(f"/admin/runs/task/{page}").content.decode()
        )


@pytest.mark.parametrize(("status", "is_hidden"), [("succeeded", True), ("running", False)])
def test_a_finished_task_offers_no_stop_and_no_live_page(
    superuser_client: Client, make_task_row: Callable[..., Task], status: str, is_hidden: bool
) -> None:
    make_task_row("running" if status == "running" else "completed", {"status": status})
    page = superuser_client.get("/admin/runs/task/task_1/change/").content.decode()
    assert ('data-chat-action="stop" hidden' in page) is is_hidden
    assert (">Last page<" in page) is is_hidden


@pytest.mark.parametrize("action", ["new", "task_1/say", "task_1/stop", "task_1/ticket"])
def test_an_action_of_a_task_is_posted(
    superuser_client: Client, make_task_row: Callable[..., Task], action: str
) -> None:
    make_task_row("ongoing")
    answer = superuser_client.get(f"/admin/runs/task/{action}/")
    assert (answer.status_code, answer["Allow"]) == (405, "POST")


def test_a_refused_call_is_among_the_tools_of_the_task_with_its_code(
    superuser_client: Client, make_task_row: Callable[..., Task]
) -> None:
    make_task_row("completed", {"status": "succeeded", "result": {}})
    call = {"id": "c1", "name": "execute_command", "args": {"command": "ls"}, "code": "E_X"}
    append_events("task_1", [NewEvent("toolUsed", refused_event_data(call) | {"runId": "run_1"})])
    page = superuser_client.get("/admin/runs/task/task_1/change/").content.decode()
    (line,) = page.split("data-chat-tools>")[1].split("</ol>")[0].split("<li")[1:]
    for text in ('data-ok="no"', 'data-tone="failed"', ">execute_command<", ">ls<", ">E_X<"):
        assert text in line, text
    assert Task.objects.get().used_browser is False
