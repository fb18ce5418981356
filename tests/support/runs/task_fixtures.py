"""Fixtures: tasks whose messages start runs of the template `test_talk`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from decisions.identity.principals import Principal
from runs.conversations import services
from runs.conversations.services import add_message, create_task
from tests.support.runs.conversation_template import Talk

MakeTask = Callable[..., str]
SendMessage = Callable[..., dict[str, Any]]


@pytest.fixture
def talk_template(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each message start a run of the template `test_talk`."""
    monkeypatch.setattr(services, "TEMPLATE", Talk.template_id)


@pytest.fixture
def make_task(principal: Principal, talk_template: None) -> MakeTask:
    """Create a task and return its id: `make_task("say hello")`."""

    def make(message: str | None = None, **options: Any) -> str:
        task, _ = create_task(principal=principal, message=message, **options)
        return str(task["taskId"])

    return make


@pytest.fixture
def send_message(principal: Principal, talk_template: None) -> SendMessage:
    """Send a message to a task: `send_message(task_id, "fail", on_busy="refuse")`."""

    def add(task_id: str, content: str, **options: Any) -> dict[str, Any]:
        return add_message(principal=principal, task_id=task_id, content=content, **options)

    return add
