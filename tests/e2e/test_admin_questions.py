"""Test answers to an agent in a real Chromium: on the task's and run's pages and in the inbox."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from decisions.identity.principals import Principal
from runs.models import Run
from runs.submission.answer import answer_run
from runs.worker.worker import WorkerProcess
from tests.support.admin.live_pages import save_screenshot
from tests.support.admin.visitor import Visitor
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn, complete

SubmitGoal = Callable[..., str]
# A page that ignores events once `window.ignoresEvents` is true, as if its connection were slow.
IGNORE_EVENTS = """
const original = Object.getOwnPropertyDescriptor(EventSource.prototype, "onmessage");
Object.defineProperty(EventSource.prototype, "onmessage", {
  set(handle) { original.set.call(this, (event) => window.ignoresEvents || handle(event)); } });"""


def ask_turn(question: str, *suggestions: str, text: str = "") -> Turn:
    question_args = {"question": question, "suggestions": list(suggestions)}
    return Turn(text, [Call("ask_followup_question", question_args)])


def answers(run_id: str) -> list[str]:
    steps = Run.objects.get(id=run_id).steps.filter(name="ask_followup_question")
    return [step.output["result"]["answer"] for step in steps.order_by("index")]


@pytest.mark.slow
@pytest.mark.usefixtures("agent_settings", "project")
def test_questions_in_the_chat_are_answered_by_a_button_and_by_text(
    visitor: Visitor, model: ModelServer, worker: WorkerProcess
) -> None:
    model.script = [
        ask_turn("Which colour?", "red", "a <b>bold</b> blue", text="I begin."),
        ask_turn("Which size?"),
        complete("Painted."),
    ]
    visitor.open("/admin/runs/task/")
    visitor.fill("textarea[name=content]", "Paint it.")
    visitor.click("button:has-text('Create task')")
    worker.work()
    visitor.wait_for("[data-role=question] button:has-text('a <b>bold</b> blue')")
    save_screenshot(visitor, "chat-question")
    visitor.click("[data-role=question] button:has-text('blue')")
    visitor.wait_for("[data-role=user] >> text=a <b>bold</b> blue")
    assert visitor.texts(".chat-suggestions") == []
    worker.work()
    visitor.wait_for("[data-role=question] >> text=Which size?")
    visitor.fill("[data-chat-form] textarea", "large")
    visitor.click("button:has-text('Send')")
    visitor.wait_for("[data-role=user] >> text=large")
    worker.work()
    visitor.wait_for("[data-role=assistant] >> text=Painted.")
    assert visitor.texts(".chat-message p") == [
        "Paint it.",
        "I begin.",
        "Which colour?",
        "a <b>bold</b> blue",
        "Which size?",
        "large",
        "Painted.",
    ]
    save_screenshot(visitor, "chat-answered")
    visitor.do(visitor.page.reload())
    visitor.wait_for("[data-role=assistant] >> text=Which colour?")
    assert answers(Run.objects.get().id) == ["a <b>bold</b> blue", "large"]


@pytest.mark.slow
def test_a_late_choice_is_refused_and_starts_nothing(
    visitor: Visitor,
    model: ModelServer,
    worker: WorkerProcess,
    principal: Principal,
    agent_settings: object,
) -> None:
    model.script = [ask_turn("Which colour?", "red"), complete("Painted.")]
    visitor.do(visitor.page.add_init_script(IGNORE_EVENTS))
    visitor.open("/admin/runs/task/")
    visitor.fill("textarea[name=content]", "Paint it.")
    visitor.click("button:has-text('Create task')")
    worker.work()
    visitor.wait_for("[data-role=question] button")
    visitor.do(visitor.page.evaluate("window.ignoresEvents = true"))
    answer_run(principal=principal, run_id=Run.objects.get().id, answer="green")
    visitor.click("[data-role=question] button")
    visitor.wait_for("[data-chat-problem]:not([hidden]) >> text=answered already")
    save_screenshot(visitor, "chat-late")
    worker.work()
    assert answers(Run.objects.get().id) == ["green"]


@pytest.mark.slow
def test_a_question_is_answered_in_the_inbox_and_on_the_runs_page(
    visitor: Visitor, model: ModelServer, worker: WorkerProcess, submit_goal: SubmitGoal
) -> None:
    model.script = [
        ask_turn("Which colour?", "red", "blue"),
        ask_turn("Which size?"),
        complete("Painted."),
    ]
    run_id = submit_goal("Paint it.")
    worker.work()
    visitor.open("/admin/")
    visitor.click("a:has-text('inbox')")
    visitor.wait_for("text=Which colour?")
    save_screenshot(visitor, "inbox-question")
    visitor.click("button:has-text('red')")
    visitor.wait_for("text=is answered and continues")
    worker.work()
    visitor.open(f"/admin/runs/run/{run_id}/change/")
    visitor.fill(".cty-question textarea", "very la")
    response = visitor.page.wait_for_event("response", lambda answer: "/live/" in answer.url)
    visitor.do(response)  # the page updates itself and keeps the text that the person is typing
    visitor.do(visitor.page.locator(".cty-question textarea").press_sequentially("rge"))
    save_screenshot(visitor, "run-question")
    visitor.click("button:has-text('Answer')")
    visitor.wait_for("text=is answered and continues")
    worker.work()
    assert Run.objects.get().status == "succeeded"
    assert answers(run_id) == ["red", "very large"]
