"""Every pair of statuses, through the one function that changes the status of a task."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pytest
from django.db import transaction

from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.conversations.message_queue import lock_task
from runs.conversations.services import create_task
from runs.conversations.state import move_task
from runs.models import Task, TaskEvent, TaskStatus


@pytest.fixture
def task_id(principal: Principal) -> str:
    return str(create_task(principal=principal, title="a task")[0]["taskId"])


def is_legal(before: TaskStatus, to: TaskStatus) -> bool:
    if before == TaskStatus.CREATED:
        return to in (TaskStatus.RUNNING, TaskStatus.TAKEOVER)
    return to != TaskStatus.CREATED or before == TaskStatus.TAKEOVER


def test_a_task_changes_status_only_along_legal_pairs(task_id: str) -> None:
    for before, to in itertools.permutations(TaskStatus, 2):
        taken_over_at = datetime.now(UTC) if before == TaskStatus.TAKEOVER else None
        Task.objects.update(status=before, taken_over_at=taken_over_at)
        with transaction.atomic():
            task = lock_task(task_id)
            assert task is not None
            if is_legal(before, to):
                move_task(task, to, actor="tester")
            else:
                with pytest.raises(ValueError, match="cannot change"):
                    move_task(task, to, actor="tester")
        assert Task.objects.get().status == (to if is_legal(before, to) else before)


def test_a_task_whose_status_changed_meanwhile_does_not_change(task_id: str) -> None:
    task = Task.objects.get()
    Task.objects.update(status=TaskStatus.COMPLETED)
    with pytest.raises(ValueError, match="was not locked"), transaction.atomic():
        move_task(task, TaskStatus.RUNNING, actor="tester")
    assert Task.objects.get().status == TaskStatus.COMPLETED
    assert not TaskEvent.objects.exists()
    assert not AuditEntry.objects.filter(action="task.status_changed").exists()
