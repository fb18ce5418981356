"""Test the live page of a task in two real browsers: a person at the admin site sees the agent's
page, takes it over during a task, uses mouse and keyboard on it, and returns it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps

from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.models import Run, Task, TaskEvent
from runs.worker.worker import WorkerProcess
from tests.support.admin.live_pages import (
    SECRET,
    SignInModel,
    click_at,
    give_back,
    save_screenshot,
    start_sign_in_task,
    take_over,
)
from tests.support.admin.visitor import Visitor
from tests.support.agent.model_server import ModelServer
from tests.support.browser.page_server import PageServer
from tests.support.runs.waiting import wait_until

Background = Callable[[Callable[[], object]], Any]
TIMEOUT_S = 60.0
TYPED_TEXTS = ("Åsa", "日本", "pasted ⌘")


def compose(visitor: Visitor, text: str) -> None:
    """Enter text as an input method does."""

    async def send_input() -> None:
        session = await visitor.page.context.new_cdp_session(visitor.page)
        composition = {"text": "に", "selectionStart": 1, "selectionEnd": 1}
        await session.send("Input.imeSetComposition", composition)
        await session.send("Input.insertText", {"text": text})
        await session.detach()

    visitor.do(send_input())


def paste(visitor: Visitor, text: str) -> None:
    """Paste from the person's own clipboard."""
    script = """text => { const data = new DataTransfer(); data.setData("text/plain", text);
    document.activeElement.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data}));}"""
    visitor.do(visitor.page.evaluate(script, text))


def check_recorded(task_id: str, expected_url: str) -> None:
    """Assert that the person's actions are recorded, and that no table has the text they typed."""
    actions = [
        action.data for action in TaskEvent.objects.filter(task_id=task_id, type="personActed")
    ]
    assert sum(action.get("clicks", 0) for action in actions) == 3
    assert sum(action.get("keys", 0) for action in actions) >= len(SECRET)
    assert [url for action in actions for url in action.get("navigations", [])] == [expected_url]
    assert AuditEntry.objects.filter(action="task.page_used", resource_id=task_id).exists()
    rows = [str(list(model._default_manager.values_list())) for model in apps.get_models()]
    for typed in (SECRET, *TYPED_TEXTS):
        assert not [row[:200] for row in rows if typed in row]


@pytest.mark.slow
def test_a_person_takes_over_the_page_signs_in_and_returns_it(
    visitor: Visitor,
    principal: Principal,
    agent_settings: Any,
    page_server: PageServer,
    model: ModelServer,
    model_that_signs_in: SignInModel,
    worker: WorkerProcess,
    in_background: Background,
) -> None:
    task_id = start_sign_in_task(visitor, principal)
    work_thread = in_background(worker.work)
    # The person may watch while the agent works.
    visitor.wait_for("[data-live-picture][src^='data:image/jpeg']")
    visitor.wait_for("[data-live-where]:not([hidden]) >> text=/form")
    save_screenshot(visitor, "live-view-only")
    take_over(visitor)
    model.resume.set()
    work_thread.join(TIMEOUT_S)
    click_at(visitor, 200, 120)
    visitor.do(visitor.page.keyboard.type("Åsa"))
    compose(visitor, TYPED_TEXTS[1])
    paste(visitor, TYPED_TEXTS[2])
    click_at(visitor, 200, 180)
    visitor.do(visitor.page.keyboard.type(SECRET))
    save_screenshot(visitor, "live-typed")
    click_at(visitor, 200, 240)
    visitor.do(
        visitor.page.wait_for_function(
            "document.querySelector('[data-live-url]').value.includes('/inside?13-11')"
        )
    )
    save_screenshot(visitor, "live-inside")
    run = Run.objects.get(task_id=task_id)
    assert run.waiting_for["type"] == "takeover"
    give_back(visitor)
    work_thread = in_background(worker.work)
    visitor.wait_for(".chat-message[data-role=assistant] >> text=Your number is 42")
    work_thread.join(TIMEOUT_S)
    run.refresh_from_db()
    assert run.status == "succeeded", run.error
    wait_until(lambda: TaskEvent.objects.filter(task_id=task_id, type="personActed").exists())
    check_recorded(task_id, page_server.url("/inside"))


@pytest.mark.slow
def test_the_person_sees_dialogs_new_tabs_and_navigation_away_from_the_page(
    visitor: Visitor,
    principal: Principal,
    agent_settings: Any,
    page_server: PageServer,
    model: ModelServer,
    model_that_signs_in: SignInModel,
    worker: WorkerProcess,
    in_background: Background,
) -> None:
    task_id = start_sign_in_task(visitor, principal)
    work_thread = in_background(worker.work)
    visitor.wait_for("[data-live-picture][src^='data:image/jpeg']")
    take_over(visitor)
    model.resume.set()
    work_thread.join(TIMEOUT_S)
    click_at(visitor, 200, 300)
    visitor.wait_for("[data-live-dialog]:not([hidden]) >> text=Sure?")
    save_screenshot(visitor, "live-dialog")
    visitor.click("[data-live-yes]")
    visitor.do(visitor.page.wait_for_selector("[data-live-dialog]", state="hidden"))
    click_at(visitor, 60, 350)
    visitor.wait_for("[data-live-tab]:not([hidden]) >> text=/other")
    visitor.click("[data-live-tab-go]")
    url_ends_with = "document.querySelector('[data-live-url]').value.endsWith"
    visitor.do(visitor.page.wait_for_function(f"{url_ends_with}('/other')"))
    visitor.fill("[data-live-url]", page_server.url("/inside"))
    visitor.do(visitor.page.press("[data-live-url]", "Enter"))
    visitor.do(visitor.page.wait_for_function(f"{url_ends_with}('/inside')"))
    give_back(visitor)
    work_thread = in_background(worker.work)
    visitor.wait_for(".chat-message[data-role=assistant] >> text=Your number is 42")
    work_thread.join(TIMEOUT_S)
    skipped = next(result for result in model_that_signs_in.tool_results if not result["ok"])
    # The model made the call for the page as it was before.
    assert skipped["error"]["code"] == "PERSON_HAD_PAGE"
    assert "title: Inside" in skipped["page"]["untrusted"]
    assert Task.objects.get(id=task_id).status == "ongoing"
