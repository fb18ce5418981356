"""Test what the person who controls the agent's page sees when it ends, in two real browsers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from decisions.identity.principals import Principal
from runners.invocation.event_loop import get_loop
from runs.conversations.maintenance import end_takeovers
from runs.live import broadcaster
from runs.live.open_pages import get_page_session, has_open_pages
from runs.models import Run, Task
from runs.worker.worker import WorkerProcess
from tests.support.admin.live_pages import (
    SignInModel,
    click_at,
    give_back,
    save_screenshot,
    start_sign_in_task,
    take_over,
)
from tests.support.admin.visitor import Visitor
from tests.support.agent.model_server import ModelServer
from tests.support.runs.waiting import wait_until

Background = Callable[[Callable[[], object]], Any]
TIMEOUT_S = 60.0


@pytest.fixture
def taken_over_task(
    visitor: Visitor,
    principal: Principal,
    agent_settings: Any,
    model: ModelServer,
    model_that_signs_in: SignInModel,
    worker: WorkerProcess,
    in_background: Background,
) -> str:
    """Return a task whose run waits while the visitor, who clicks once, controls its page."""
    task_id = start_sign_in_task(visitor, principal)
    work_thread = in_background(worker.work)
    visitor.wait_for("[data-live-picture][src^='data:image/jpeg']")
    take_over(visitor)
    model.resume.set()
    work_thread.join(TIMEOUT_S)
    click_at(visitor, 200, 120)
    return task_id


def check_page_closed(task_id: str, status: str) -> None:
    """Assert that the page is closed and that no worker watches it."""
    wait_until(lambda: not has_open_pages())
    wait_until(lambda: all(task.done() for task in broadcaster._serving.values()))
    assert Task.objects.get(id=task_id).status == status


@pytest.mark.slow
def test_stopping_a_task_closes_the_page_and_reports_the_reason(
    visitor: Visitor, taken_over_task: str
) -> None:
    visitor.click("button:has-text('Stop')")
    visitor.wait_for("[data-live-absent]:not([hidden]) >> text=The run was canceled")
    visitor.wait_for(".chat-message[data-role=failure] >> text=The task was stopped")
    save_screenshot(visitor, "live-stopped")
    assert Run.objects.get().status == "canceled"
    check_page_closed(taken_over_task, "ongoing")


@pytest.mark.slow
def test_a_takeover_that_lasts_too_long_ends_with_a_reason(
    visitor: Visitor, taken_over_task: str
) -> None:
    half_an_hour = timedelta(minutes=30)
    Task.objects.update(taken_over_at=F("taken_over_at") - half_an_hour)
    assert end_takeovers() == 1
    visitor.wait_for(
        "[data-live-absent]:not([hidden]) >> text=did not give it back within 30 minutes"
    )
    visitor.wait_for(".chat-message[data-role=failure] >> text=RUN_TIMEOUT")
    save_screenshot(visitor, "live-timeout")
    assert Run.objects.get().error["errorCode"] == "RUN_TIMEOUT"
    check_page_closed(taken_over_task, "error")


@pytest.mark.slow
def test_a_closed_page_is_reopened_when_the_person_returns_it(
    visitor: Visitor,
    taken_over_task: str,
    model_that_signs_in: SignInModel,
    worker: WorkerProcess,
    in_background: Background,
) -> None:
    session = get_page_session(taken_over_task)
    assert session is not None
    tab = session.live_tab()
    assert tab is not None
    get_loop().submit(tab.page.close()).result(TIMEOUT_S)
    visitor.wait_for("[data-live-absent]:not([hidden]) >> text=The page was closed. Give it back")
    save_screenshot(visitor, "live-shut")
    give_back(visitor)
    in_background(worker.work)
    visitor.wait_for(".chat-message[data-role=assistant] >> text=It had been closed")
    wait_until(lambda: Run.objects.get().ended_at)
    assert Run.objects.get().status == "succeeded", Run.objects.get().error
    skipped = model_that_signs_in.tool_results[1]
    assert skipped["error"]["code"] == "PERSON_HAD_PAGE"
    assert skipped["page"]["newTab"]["url"] == model_that_signs_in.url
    assert skipped["page"]["ok"] is True
