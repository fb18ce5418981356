"""Test a takeover of the agent's page while its run already waits for the person, for an answer or
for a confirmation, in two real browsers.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.principals import Principal
from runs.models import Run, Task, TaskEvent
from runs.worker.worker import WorkerProcess
from tests.support.admin.live_pages import (
    FORM,
    SIGNED_IN,
    WaitingModel,
    click_at,
    save_screenshot,
    start_sign_in_task,
    take_over,
)
from tests.support.admin.visitor import Visitor
from tests.support.agent.model_server import ModelServer
from tests.support.browser.page_server import PageServer
from tests.support.decisions.confirmations import confirm

WaitingCall = tuple[str, dict[str, str]]
ASK: WaitingCall = ("ask_followup_question", {"question": "Will you sign in for me?"})
CLICK: WaitingCall = ("browser_click", {"xpath": "//button[@id='go']"})
TakeOver = Callable[[WaitingCall], str]


@pytest.fixture
def take_over_waiting_task(
    visitor: Visitor,
    principal: Principal,
    agent_settings: Any,
    page_server: PageServer,
    model: ModelServer,
    worker: WorkerProcess,
) -> TakeOver:
    """Return a function that runs a task until it waits, has the visitor take over its page and
    sign in, and returns the task's id.
    """
    page_server.add("/inside", SIGNED_IN)

    def take_over_at(waiting_call: WaitingCall) -> str:
        model.answer = WaitingModel(page_server.add("/form", FORM), waiting_call)
        task_id = start_sign_in_task(visitor, principal)
        worker.work()
        visitor.wait_for("[data-status-now=ongoing] [data-role=question]")
        take_over(visitor)
        click_at(visitor, 200, 240)
        condition = "document.querySelector('[data-live-url]').value.includes('/inside?0-0')"
        visitor.do(visitor.page.wait_for_function(condition))
        return task_id

    return take_over_at


def move_start_back_an_hour() -> None:
    """Move the run's start an hour back, past its timeout."""
    assert Run.objects.get().timeout_ms < 3_600_000
    ago = timedelta(hours=1)
    Run.objects.update(created_at=F("created_at") - ago, started_at=F("started_at") - ago)


def statuses(task_id: str) -> list[str]:
    """Return the statuses of the task in order."""
    rows = TaskEvent.objects.filter(task_id=task_id, type="statusUpdate").order_by("seq")
    return [row.data["status"] for row in rows if "step" not in row.data]


def send_answer(visitor: Visitor) -> None:
    visitor.fill("[data-chat-form] textarea", "I did.")
    visitor.click("button:has-text('Send')")
    visitor.wait_for("[data-role=user] >> text=I did.")


def give_back(visitor: Visitor, status: str) -> None:
    visitor.click("button:has-text('Give back')")
    visitor.wait_for(f"[data-status-now={status}]")


def check_answered_from_page(visitor: Visitor) -> Run:
    """Assert that the model received the page as the person left it and answered from it."""
    visitor.wait_for("[data-role=assistant] >> text=I see your number.")
    run = Run.objects.get()
    assert run.status == "succeeded", run.error
    assert run.active_ms < run.timeout_ms
    return run


@pytest.mark.slow
def test_an_answer_during_a_takeover_reaches_the_model_when_the_page_is_returned(
    visitor: Visitor,
    take_over_waiting_task: TakeOver,
    model: ModelServer,
    worker: WorkerProcess,
) -> None:
    task_id = take_over_waiting_task(ASK)
    assert Run.objects.get().waiting_for["type"] == "answer"
    send_answer(visitor)
    worker.work()
    run = Run.objects.get()
    assert (run.status, run.waiting_for["type"]) == ("running", "takeover")
    assert (Task.objects.get().status, len(model.requests)) == (
        "takeover",
        2,
    )  # no question is open
    visitor.wait_for("[data-live-screen][data-acts]")
    save_screenshot(visitor, "live-answered-meanwhile")
    move_start_back_an_hour()
    worker.work()
    assert Run.objects.get().active_ms == run.active_ms
    give_back(visitor, "running")
    worker.work()
    check_answered_from_page(visitor)
    assert statuses(task_id) == ["running", "ongoing", "takeover", "running", "ongoing"]


@pytest.mark.slow
def test_a_page_returned_before_the_answer_is_read_before_the_model_continues(
    visitor: Visitor,
    take_over_waiting_task: TakeOver,
    model: ModelServer,
    worker: WorkerProcess,
) -> None:
    task_id = take_over_waiting_task(ASK)
    give_back(visitor, "ongoing")
    worker.work()
    assert (Run.objects.get().waiting_for["type"], len(model.requests)) == ("answer", 2)
    move_start_back_an_hour()
    send_answer(visitor)
    worker.work()
    check_answered_from_page(visitor)
    assert statuses(task_id) == ["running", "ongoing", "takeover", "ongoing", "running", "ongoing"]


@pytest.mark.slow
@pytest.mark.parametrize("is_confirmed_first", [True, False])
def test_a_call_confirmed_during_a_takeover_does_not_run_on_the_changed_page(
    visitor: Visitor,
    take_over_waiting_task: TakeOver,
    model: ModelServer,
    worker: WorkerProcess,
    page_server: PageServer,
    is_confirmed_first: bool,
) -> None:
    create_rule(RuleFields("confirm", tool="browser_click", reason="test"), actor="t")
    task_id = take_over_waiting_task(CLICK)
    waiting = Run.objects.get().waiting_for
    assert waiting["type"] == "confirmation"
    if is_confirmed_first:
        confirm(decision_id=waiting["decisionId"], by="t", how="test")
        worker.work()
        assert (Run.objects.get().waiting_for["type"], len(model.requests)) == ("takeover", 2)
        save_screenshot(visitor, "live-confirmed-meanwhile")
    move_start_back_an_hour()
    give_back(visitor, "running" if is_confirmed_first else "ongoing")
    if not is_confirmed_first:
        confirm(decision_id=waiting["decisionId"], by="t", how="test")
    worker.work()
    check_answered_from_page(visitor)
    assert isinstance(model.answer, WaitingModel)
    click = model.answer.tool_results[-1]
    assert (click["error"]["code"], page_server.hits["/inside"]) == ("PERSON_HAD_PAGE", 1)
    assert statuses(task_id)[:3] == ["running", "ongoing", "takeover"]
