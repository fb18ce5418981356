"""The tasks that a browser is sent when it connects: it takes all others as ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from decisions.identity.principals import Principal
from runs.live import paired_browser
from runs.models import Run, Task, TaskStatus
from tests.support.browser.paired_browser import pair

NOW = datetime.now(UTC)


def add_tasks(principal: Principal, client_id: str, *statuses: str) -> None:
    """Add tasks task_0, task_1, … that act in a browser, each newer than the one before."""
    for number, status in enumerate(statuses):
        Task.objects.create(
            id=f"task_{number}",
            tenant_id=principal.tenant_id,
            workspace_id=principal.workspace_id,
            principal_id=principal.id,
            selected_client_id=client_id,
            status=status,
            taken_over_at=NOW if status == TaskStatus.TAKEOVER else None,
            created_at=NOW,
            updated_at=NOW + timedelta(seconds=number),
        )


def listed(principal: Principal, client_id: str) -> list[str]:
    tasks = paired_browser.tasks_of_browser(principal=principal, client_id=client_id)
    return [task["taskId"] for task in tasks]


def test_a_browser_is_sent_all_its_tasks_that_have_not_ended(principal: Principal) -> None:
    client_id = pair(principal).id
    add_tasks(principal, client_id, TaskStatus.COMPLETED, *[TaskStatus.ONGOING] * 30)
    assert set(listed(principal, client_id)) == {f"task_{number}" for number in range(1, 31)}


def test_a_task_that_a_person_has_taken_over_is_sent_first(principal: Principal) -> None:
    client_id = pair(principal).id
    add_tasks(principal, client_id, TaskStatus.TAKEOVER, TaskStatus.ONGOING, TaskStatus.ONGOING)
    assert listed(principal, client_id) == ["task_0", "task_2", "task_1"]


def test_a_browser_is_sent_what_its_waiting_tasks_wait_for(
    principal: Principal, make_run: Callable[..., Run]
) -> None:
    client_id = pair(principal).id
    add_tasks(principal, client_id, TaskStatus.ONGOING, TaskStatus.ONGOING)
    question = {"type": "answer", "question": "Which size?" * 100}
    make_run(status="running", ready=False, waiting_for=question, task_id="task_0")
    make_run(status="running", task_id="task_1")
    tasks = paired_browser.tasks_of_browser(principal=principal, client_id=client_id)
    waits = {task["taskId"]: task.get("waitsFor") for task in tasks}
    answer = {"type": "answer", "question": question["question"][:300]}
    assert waits == {"task_0": answer, "task_1": None}
