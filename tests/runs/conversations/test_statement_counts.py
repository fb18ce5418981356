"""Reading a task takes the same number of statements however long its conversation is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from decisions.identity.principals import Principal
from runs.conversations.selectors import get_task, list_tasks
from runs.conversations.services import add_message, stop_task

MakeTask = Callable[..., str]
SendMessage = Callable[..., dict[str, Any]]
Read = Callable[[str], object]


@pytest.fixture
def reads(superuser_client: Client, principal: Principal, talk_template: None) -> dict[str, Read]:
    """Ways to read a task, or to add a message to it, by name."""
    return {
        "page": lambda task_id: superuser_client.get(f"/admin/runs/task/{task_id}/change/"),
        "task": lambda task_id: get_task(principal=principal, task_id=task_id),
        "list": lambda _: list_tasks(principal=principal),
        "say": lambda task_id: add_message(principal=principal, task_id=task_id, content="more"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["page", "task", "list", "say"])
def test_a_long_conversation_takes_no_more_statements_than_a_short_one(
    principal: Principal,
    make_task: MakeTask,
    send_message: SendMessage,
    reads: dict[str, Read],
    name: str,
) -> None:
    counts = []
    for messages in (2, 12):
        task_id = make_task("say hi")
        for number in range(messages):
            send_message(task_id, f"say {number}")
            if number % 2:
                stop_task(principal=principal, task_id=task_id)
        reads[name](task_id)
        with CaptureQueriesContext(connection) as queries:
            reads[name](task_id)
        counts.append(len(queries))
    assert counts[0] == counts[1]
