"""Answers to an agent's questions: each question is answered once, and an answer applies to one
question only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from decisions.authorization.authorize import admit_call
from decisions.foundation.errors import InvalidInput
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.conversations.services import add_message, create_task
from runs.models import Run, Task, TaskEvent, TaskMessage
from runs.submission import answer as answer_module
from runs.submission.answer import answer_run
from runs.submission.cancel import cancel_run
from runs.submission.resume import resume_settled_runs
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import tool_results
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.runs.concurrent_calls import at_once

Goal = Callable[..., str]


def question_turn(question: str, **more: Any) -> Turn:
    return Turn("", [Call("ask_followup_question", {"question": question, **more})])


@pytest.fixture
def waiting_run(model: ModelServer, submit_goal: Goal, worker: WorkerProcess) -> Run:
    """A run that asks for a colour and then for a size."""
    colours = [" red ", "blue", "red", "", 5, "x" * 201]
    model.script = [
        question_turn("Which colour?", suggestions=colours),
        question_turn("Which size?"),
        complete(),
    ]
    run_id = submit_goal()
    worker.work()
    return Run.objects.get(id=run_id)


def refused(principal: Principal, run: Run, **more: Any) -> str:
    """Answer, and return why the answer is refused."""
    with pytest.raises(InvalidInput) as caught:
        answer_run(principal=principal, run_id=run.id, answer="too late", **more)
    return caught.value.message


def test_a_question_may_suggest_answers_and_invalid_ones_are_left_out(waiting_run: Run) -> None:
    assert waiting_run.waiting_for["question"] == "Which colour?"
    assert waiting_run.waiting_for["suggestions"] == ["red", "blue"]


def test_a_second_answer_is_refused_as_already_answered(
    waiting_run: Run, principal: Principal
) -> None:
    answer_run(principal=principal, run_id=waiting_run.id, answer="red")
    assert "answered already" in refused(principal, waiting_run)
    assert Run.objects.get().options["answer"] == "red"
    answered = AuditEntry.objects.get(action="run.answered")
    assert (answered.actor, answered.resource_id) == (principal.id, waiting_run.id)
    assert answered.metadata == {"characters": 3}


def test_one_of_two_concurrent_answers_is_accepted(waiting_run: Run, principal: Principal) -> None:
    refusals: list[str] = []

    def send_answer(word: str) -> None:
        try:
            answer_run(principal=principal, run_id=waiting_run.id, answer=word)
        except InvalidInput as refusal:
            refusals.append(refusal.message)

    at_once([lambda: send_answer("red"), lambda: send_answer("blue")])
    assert len(refusals) == 1
    assert "first" in refusals[0] or "already" in refusals[0]
    assert AuditEntry.objects.filter(action="run.answered").count() == 1


def test_an_answer_to_one_question_does_not_answer_the_next(
    waiting_run: Run, principal: Principal, worker: WorkerProcess
) -> None:
    until = waiting_run.waiting_for["expiresAt"]
    answer_run(principal=principal, run_id=waiting_run.id, answer="red", question_expires_at=until)
    worker.work()
    assert Run.objects.get().waiting_for["question"] == "Which size?"
    assert "asks another one now" in refused(principal, waiting_run, question_expires_at=until)
    assert Run.objects.get().waiting_for["question"] == "Which size?"


def test_an_answer_to_an_ended_run_is_refused(waiting_run: Run, principal: Principal) -> None:
    cancel_run(principal=principal, run_id=waiting_run.id)
    assert "it has ended (canceled)" in refused(principal, waiting_run)
    assert Run.objects.get().status == "canceled"


@pytest.mark.usefixtures("project", "agent_settings")
def test_a_task_stores_an_answer_that_was_sent_directly_to_the_run(
    model: ModelServer, principal: Principal, worker: WorkerProcess
) -> None:
    model.script = [
        question_turn("Which colour?"),
        complete("It is red."),
        complete("Red, as you said."),
    ]
    task, _ = create_task(principal=principal, message="Paint it.")
    worker.work()
    assert Task.objects.get().status == "ongoing"
    answer_run(principal=principal, run_id=Run.objects.get().id, answer="red")
    assert Task.objects.get().status == "running"
    worker.work()
    messages = list(TaskMessage.objects.order_by("number").values_list("role", "content"))
    assert messages == [
        ("user", "Paint it."),
        ("assistant", "Which colour?"),
        ("user", "red"),
        ("assistant", "It is red."),
    ]
    events = TaskEvent.objects.filter(type="message").order_by("seq")
    assert [event.data["content"] for event in events] == [content for _, content in messages]
    add_message(principal=principal, task_id=task["taskId"], content="Which was it?")
    worker.work()
    conversation = [event["content"] for event in model.requests[-1].body["messages"]]
    assert conversation[1:5] == [content for _, content in messages]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Call a function after the next answer was checked, and before it is recorded."""

    def arrange(function: Callable[[], object]) -> None:
        def admit_late(request: Any) -> Any:
            monkeypatch.setattr(answer_module, "admit_call", admit_call)
            function()
            return admit_call(request)

        monkeypatch.setattr(answer_module, "admit_call", admit_late)

    return arrange


def test_an_answer_that_comes_just_after_another_one_is_refused(
    waiting_run: Run, principal: Principal, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    meanwhile(lambda: answer_run(principal=principal, run_id=waiting_run.id, answer="red"))
    assert "answered already" in refused(principal, waiting_run)
    assert Run.objects.get().options["answer"] == "red"


def test_an_answer_that_comes_just_after_the_next_question_is_refused(
    waiting_run: Run,
    principal: Principal,
    worker: WorkerProcess,
    meanwhile: Callable[[Callable[[], object]], None],
) -> None:
    def answer_and_resume() -> None:
        answer_run(principal=principal, run_id=waiting_run.id, answer="red")
        worker.work()

    meanwhile(answer_and_resume)
    assert "answered already" in refused(principal, waiting_run)
    assert Run.objects.get().waiting_for["question"] == "Which size?"


def test_a_question_that_expires_is_not_answered_with_the_earlier_answer(
    waiting_run: Run,
    principal: Principal,
    worker: WorkerProcess,
    model: ModelServer,
    agent_settings: Any,
) -> None:
    agent_settings.CONFIRM_TTL_S = -1
    answer_run(principal=principal, run_id=waiting_run.id, answer="red")
    worker.work()
    assert resume_settled_runs() == 1
    worker.work()
    first, second = tool_results(model.requests[-1])
    assert (first["result"]["answer"], second["error"]["code"]) == ("red", "NO_ANSWER")
