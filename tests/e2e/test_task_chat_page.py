"""Test the chat page of a task in a real Chromium: the agent pursues a goal over real pages while
the page shows it live (test_goal_at_doors covers MCP, REST and the WebSocket).
"""

from __future__ import annotations

import pytest

from runs.models import Run, Task, TaskEvent
from runs.worker.worker import WorkerProcess
from tests.support.admin.live_pages import save_screenshot
from tests.support.admin.visitor import Visitor
from tests.support.agent.browsing_model import BrowsingModel, serve_catalogue
from tests.support.agent.goal_checks import GOAL, check_events, check_reached
from tests.support.agent.model_server import ModelServer
from tests.support.browser.page_server import PageServer


@pytest.mark.usefixtures("agent_settings")
def test_the_chat_page_shows_messages_tools_and_the_page_live(
    visitor: Visitor,
    model: ModelServer,
    page_server: PageServer,
    worker: WorkerProcess,
) -> None:
    model.answer = BrowsingModel(serve_catalogue(page_server))
    visitor.open("/admin/runs/task/")
    visitor.fill("textarea[name=content]", GOAL)
    visitor.click(
        "button[type=submit]:has-text('Send'), button[type=submit]:has-text('Create task')"
    )
    visitor.wait_for(f"[data-chat-log] >> text={GOAL}")
    worker.work()
    check_reached(Run.objects.get(), page_server, output=None)
    check_events(list(TaskEvent.objects.order_by("seq").values("seq", "type", "data")), output=None)
    visitor.wait_for("[data-chat-log] >> text=I open the shop.")
    visitor.wait_for("[data-chat-log] >> text=There are 7 chairs.")
    visitor.wait_for("[data-chat-state] >> text=answered")
    visitor.wait_for("[data-chat-tools] >> text=browser_type")
    visitor.wait_for("[data-chat-shot] img[src]")
    assert Task.objects.get().status == "ongoing"
    save_screenshot(visitor, "task-chat")
