"""Test a task's page in a real Chromium: chat with the agent and watch its tool calls live."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from decisions.identity.principals import Principal
from runs.conversations.log import append_events
from runs.conversations.services import take_over_task
from runs.lifecycle.changes import NewEvent
from runs.models import Run, Task, TaskMessage
from runs.worker.worker import WorkerProcess
from tests.support.admin.live_pages import save_screenshot
from tests.support.admin.visitor import Visitor

MakeTask = Callable[..., str]
MakeClient = Callable[..., Client]
Background = Callable[[Callable[[], object]], Any]


def open_task(visitor: Visitor, task_id: str) -> None:
    visitor.open(f"/admin/runs/task/{task_id}/change/")
    visitor.wait_for("[data-chat-live]:not([hidden])")


def send_message(visitor: Visitor, content: str) -> None:
    visitor.do(visitor.page.fill("[data-chat-form] textarea", content))
    visitor.do(visitor.page.press("[data-chat-form] textarea", "Enter"))


def test_the_agents_messages_and_tool_calls_are_shown_live(
    visitor: Visitor,
    make_task: MakeTask,
    worker: WorkerProcess,
    in_background: Background,
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    task_id = make_task()
    open_task(visitor, task_id)
    send_message(
        visitor,
        f"say looking at the page; use browser_click; picture; until {gate}; say the shop is open",
    )
    visitor.wait_for(".chat-message[data-role=user]")
    work_thread = in_background(worker.work)
    visitor.wait_for(".chat-message[data-role=assistant] >> text=looking at the page")
    visitor.wait_for("[data-chat-tools] li >> text=browser_click")
    visitor.wait_for("[data-chat-state] .cty-pill[data-tone=running]")
    visitor.wait_for("[data-chat-shot] img[src*='art_']")
    save_screenshot(visitor, "chat-running")
    gate.touch()
    visitor.wait_for("[data-chat-state] .cty-pill >> text=answered")
    visitor.wait_for(".chat-message[data-role=assistant] >> text=the shop is open")
    work_thread.join(30)
    log_text = visitor.do(visitor.page.inner_text("[data-chat-log]"))
    assert log_text.count("the shop is open") == 2  # in the request, and once in the answer


@pytest.mark.slow
def test_a_page_opened_later_shows_the_same_messages(
    visitor: Visitor,
    make_task: MakeTask,
    worker: WorkerProcess,
) -> None:
    task_id = make_task("use browser_click; picture; say the shop is open")
    worker.work()
    visitor.open("/admin/runs/task/")
    visitor.click("a.cty-link:has-text('use browser_click')")
    visitor.wait_for(".chat-message[data-role=assistant] >> text=the shop is open")
    visitor.wait_for("[data-chat-tools] li >> text=browser_click")
    visitor.wait_for("[data-chat-state] .cty-pill >> text=answered")
    visitor.wait_for("[data-chat-shot] img[src*='art_']")
    save_screenshot(visitor, "chat-later")
    assert Task.objects.get(id=task_id).status == "ongoing"
    assert "TaskMessage" not in visitor.do(visitor.page.content())


@pytest.mark.slow
def test_a_page_opened_during_a_run_shows_the_earlier_messages(
    visitor: Visitor,
    make_task: MakeTask,
    worker: WorkerProcess,
    in_background: Background,
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    task_id = make_task(f"say first words; until {gate}; say last words")
    work_thread = in_background(worker.work)
    open_task(visitor, task_id)
    visitor.wait_for(".chat-message[data-role=assistant] >> text=first words")
    gate.touch()
    visitor.wait_for(".chat-message[data-role=assistant] >> text=last words")
    work_thread.join(30)


@pytest.mark.slow
def test_a_failure_is_displayed_and_a_second_message_is_queued(
    visitor: Visitor,
    make_task: MakeTask,
    worker: WorkerProcess,
) -> None:
    open_task(visitor, make_task("fail"))
    send_message(visitor, "say better now")
    visitor.wait_for(".chat-message[data-role=user] >> text=say better now")
    worker.work()
    visitor.wait_for(".chat-message[data-role=failure] >> text=failed as instructed")
    visitor.wait_for(".chat-message[data-role=assistant] >> text=better now")
    visitor.wait_for("[data-chat-state] .cty-pill >> text=answered")
    save_screenshot(visitor, "chat-failed")


@pytest.mark.slow
def test_a_person_takes_over_and_returns_the_page_and_stops_the_task(
    visitor: Visitor, make_task: MakeTask
) -> None:
    task_id = make_task("say hi")
    open_task(visitor, task_id)
    visitor.click("button:has-text('Take over')")
    visitor.wait_for("[data-chat-takeover]:not([hidden])")
    save_screenshot(visitor, "chat-takeover")
    visitor.click("button:has-text('Give back')")
    visitor.wait_for("[data-chat-state] .cty-pill >> text=waits for a worker")
    visitor.click("button:has-text('Stop')")
    visitor.wait_for("[data-chat-state] .cty-pill >> text=stopped")
    assert visitor.texts("[data-chat-action=stop]:not([hidden])") == []
    assert Run.objects.get().status == "canceled"


@pytest.mark.slow
def test_the_controlling_person_and_others_see_who_controls_the_page(
    visitor: Visitor,
    make_task: MakeTask,
    principal: Principal,
    staff_client: MakeClient,
    settings: Any,
) -> None:
    task_id = make_task("say hi")
    open_task(visitor, task_id)
    take_over_task(principal=principal, task_id=task_id)
    visitor.wait_for(f"[data-chat-takeover]:not([hidden]) >> text={principal.id} controls the page")
    visitor.click("button:has-text('Give back')")
    visitor.click("button:has-text('Take over')")
    visitor.wait_for("[data-chat-takeover]:not([hidden]) >> text=You control the page")
    visitor.do(visitor.page.reload())
    visitor.wait_for("[data-chat-takeover]:not([hidden]) >> text=You control the page")
    name = settings.SESSION_COOKIE_NAME
    other_cookie = staff_client("runs.view_task").cookies[name].value
    context = visitor.page.context
    visitor.do(context.add_cookies([{"name": name, "value": other_cookie, "url": visitor.address}]))
    open_task(visitor, task_id)
    visitor.wait_for("[data-chat-takeover]:not([hidden]) >> text=/^admin controls the page/")
    save_screenshot(visitor, "chat-takeover-other")


@pytest.mark.slow
def test_a_refused_message_is_reported_and_stays_in_the_input(
    visitor: Visitor, make_task: MakeTask
) -> None:
    open_task(visitor, make_task())
    visitor.do(
        visitor.page.evaluate("document.querySelector('textarea').removeAttribute('maxlength')")
    )
    send_message(visitor, "x" * 65_537)
    visitor.wait_for("[data-chat-problem]:not([hidden]) >> text=65536 characters")
    input_text = visitor.do(visitor.page.input_value("[data-chat-form] textarea"))
    assert len(input_text) == 65_537
    assert not TaskMessage.objects.exists()


@pytest.mark.slow
def test_untrusted_text_executes_no_script(
    visitor: Visitor,
    make_task: MakeTask,
    worker: WorkerProcess,
) -> None:
    script_markup = '<img src=x onerror="window.ran=1"></script><svg onload="window.ran=1">'
    task_id = make_task(
        f"say {script_markup}; use {script_markup}; output {script_markup}", title=script_markup
    )
    worker.work()
    for _ in range(2):  # live from the event log, and after the page is opened again
        open_task(visitor, task_id)
        visitor.wait_for(".chat-message[data-role=assistant]")
        assert visitor.do(visitor.page.evaluate("window.ran")) is None
        Task.objects.update(title=script_markup)


@pytest.mark.slow
def test_a_task_is_created_from_the_task_list(visitor: Visitor, make_task: MakeTask) -> None:
    visitor.open("/admin/runs/task/")
    visitor.do(visitor.page.fill("textarea[name=content]", "say hello"))
    visitor.click("button:has-text('Create task')")
    visitor.wait_for(".chat-message[data-role=user] >> text=say hello")
    assert Task.objects.get().principal_id == "admin:admin"


@pytest.mark.slow
def test_a_question_is_displayed_once_and_again_after_a_reload(
    visitor: Visitor,
    make_task: MakeTask,
    worker: WorkerProcess,
) -> None:
    task_id = make_task("say well; ask at what time?; say booked")
    open_task(visitor, task_id)
    worker.work()
    visitor.wait_for("[data-chat-log] >> text=at what time?")
    save_screenshot(visitor, "chat-asks")
    send_message(visitor, "at two")
    visitor.wait_for(".chat-message[data-role=user] >> text=at two")
    worker.work()
    visitor.wait_for(".chat-message[data-role=assistant] >> text=booked")
    for _ in range(2):  # live from the event log, and after the page is opened again
        texts = [text.splitlines()[0] for text in visitor.texts(".chat-message p")][1:]
        assert [text for text in texts if text in ("at what time?", "at two")] == [
            "at what time?",
            "at two",
        ]
        open_task(visitor, task_id)


@pytest.mark.slow
def test_a_page_reports_that_no_worker_runs_until_one_starts(
    visitor: Visitor, make_task: MakeTask, request: pytest.FixtureRequest
) -> None:
    open_task(visitor, make_task("say hi"))
    visitor.wait_for("[data-chat-no-worker] >> text=No worker is running")
    request.getfixturevalue("worker").work()
    visitor.wait_for(".chat-message[data-role=assistant] >> text=hi")
    assert visitor.texts("[data-chat-no-worker]") == []


@pytest.mark.slow
def test_thousands_of_words_arrive_in_order_and_keep_the_scroll_position(
    visitor: Visitor,
    make_task: MakeTask,
    worker: WorkerProcess,
) -> None:
    task_id = make_task("say hi")
    run_id = Run.objects.get().id
    for first in range(0, 3000, 500):
        words = [f"{number}\n" for number in range(first, first + 500)]
        append_events(
            task_id, [NewEvent("chatDelta", {"content": w, "runId": run_id}) for w in words]
        )
    open_task(visitor, task_id)
    visitor.wait_for(".chat-message[data-role=assistant] >> text=2999")
    answer = visitor.texts(".chat-message[data-role=assistant] p")[0]
    assert answer.split() == [str(number) for number in range(3000)]
    log = "document.querySelector('[data-chat-log]')"
    at_end = f"{log}.scrollHeight - {log}.scrollTop - {log}.clientHeight < 80"
    visitor.do(visitor.page.wait_for_function(at_end))
    visitor.do(visitor.page.evaluate(f"{log}.scrollTop = 0"))
    visitor.do(visitor.page.wait_for_function(f"{log}.scrollTop === 0"))
    append_events(task_id, [NewEvent("chatDelta", {"content": "and more", "runId": run_id})])
    visitor.wait_for(".chat-message[data-role=assistant] >> text=and more")
    assert visitor.do(visitor.page.evaluate(f"{log}.scrollTop")) == 0


@pytest.mark.slow
def test_an_unavailable_server_is_reported_and_the_message_is_not_lost(
    visitor: Visitor, make_task: MakeTask
) -> None:
    open_task(visitor, make_task())
    visitor.do(visitor.page.route("**/say/", lambda route: route.abort()))
    send_message(visitor, "say hi")
    visitor.wait_for("[data-chat-problem]:not([hidden]) >> text=The server is unavailable")
    visitor.do(visitor.page.unroute("**/say/"))
    visitor.do(visitor.page.press("[data-chat-form] textarea", "Enter"))
    visitor.wait_for(".chat-message[data-role=user] >> text=say hi")
    assert TaskMessage.objects.count() == 1
