"""Answers to an agent's questions: each question is answered once, and an answer applies to one
question only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from decisions.errors import InvalidInput
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.conversations.services import add_message, create_task
from runs.models import Run, Task, TaskEvent, TaskMessage
from runs.submission import answer as answer_module
from runs.submission.answer import answer_run
from runs.submission.resume import resume_settled_runs
from runs.submission.services import cancel_run
from runs.worker.worker import WorkerProcess
from tests.integration.racing import at_once
from tests.support.agent_goals import tool_results
from tests.support.model_server import ModelServer
from tests.support.model_turns import Call, Turn, complete

pytest_plugins = [
    "tests.support.workspace_fixtures",
    "tests.support.model_fixtures",
    "tests.support.agent_fixtures",
]
Goal = Callable[..., str]


def asks(question: str, **more: Any) -> Turn:
    return Turn("", [Call("ask_followup_question", {"question": question, **more})])


@pytest.fixture
def asking(model: ModelServer, submit_goal: Goal, worker: WorkerProcess) -> Run:
    """A run that asks for a colour and then for a size."""
    colours = [" red ", "blue", "red", "", 5, "x" * 201]
    model.script = [asks("Which colour?", suggestions=colours), asks("Which size?"), complete()]
    run_id = submit_goal()
    worker.work()
    return Run.objects.get(id=run_id)


def refused(principal: Principal, run: Run, **more: Any) -> str:
    """Answer, and return why the answer is refused."""
    with pytest.raises(InvalidInput) as caught:
        answer_run(principal=principal, run_id=run.id, answer="too late", **more)
    return caught.value.message


def test_a_question_may_suggest_answers_and_invalid_ones_are_left_out(asking: Run) -> None:
    assert asking.waiting_for["question"] == "Which colour?"
    assert asking.waiting_for["suggestions"] == ["red", "blue"]


def test_a_second_answer_is_refused_as_already_answered(asking: Run, principal: Principal) -> None:
    answer_run(principal=principal, run_id=asking.id, answer="red")
    assert "answered already" in refused(principal, asking)
    assert Run.objects.get().options["answer"] == "red"
    answered = AuditEntry.objects.get(action="run.answered")
    assert (answered.actor, answered.resource_id) == (principal.id, asking.id)
    assert answered.metadata == {"characters": 3}


def test_one_of_two_concurrent_answers_is_accepted(asking: Run, principal: Principal) -> None:
    told: list[str] = []

    def say(word: str) -> None:
        try:
            answer_run(principal=principal, run_id=asking.id, answer=word)
        except InvalidInput as refusal:
            told.append(refusal.message)

    at_once([lambda: say("red"), lambda: say("blue")])
    assert len(told) == 1
    assert "first" in told[0] or "already" in told[0]
    assert AuditEntry.objects.filter(action="run.answered").count() == 1


def test_an_answer_to_one_question_does_not_answer_the_next(
    asking: Run, principal: Principal, worker: WorkerProcess
) -> None:
    until = asking.waiting_for["expiresAt"]
    answer_run(principal=principal, run_id=asking.id, answer="red", question_expires_at=until)
    worker.work()
    assert Run.objects.get().waiting_for["question"] == "Which size?"
    assert "asks another one now" in refused(principal, asking, question_expires_at=until)
    assert Run.objects.get().waiting_for["question"] == "Which size?"


def test_an_answer_to_an_ended_run_is_refused(asking: Run, principal: Principal) -> None:
    cancel_run(principal=principal, run_id=asking.id)
    assert "it has ended (canceled)" in refused(principal, asking)
    assert Run.objects.get().status == "canceled"


@pytest.mark.usefixtures("project", "agent_settings")
def test_a_task_stores_an_answer_that_was_sent_directly_to_the_run(
    model: ModelServer, principal: Principal, worker: WorkerProcess
) -> None:
    model.script = [asks("Which colour?"), complete("It is red."), complete("Red, as you said.")]
    task, _ = create_task(principal=principal, message="Paint it.")
    worker.work()
    assert Task.objects.get().status == "ongoing"
    answer_run(principal=principal, run_id=Run.objects.get().id, answer="red")
    assert Task.objects.get().status == "running"
    worker.work()
    said = list(TaskMessage.objects.order_by("number").values_list("role", "content"))
    assert said == [
        ("user", "Paint it."),
        ("assistant", "Which colour?"),
        ("user", "red"),
        ("assistant", "It is red."),
    ]
    told = TaskEvent.objects.filter(type="message").order_by("seq")
    assert [one.data["content"] for one in told] == [content for _, content in said]
    add_message(principal=principal, task_id=task["taskId"], content="Which was it?")
    worker.work()
    before = [one["content"] for one in model.requests[-1].body["messages"]]
    assert before[1:5] == [content for _, content in said]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Call a function after the next answer was checked, and before it is recorded."""
    admit_call = answer_module.admit_call

    def arrange(function: Callable[[], object]) -> None:
        def admit_late(request: Any) -> Any:
            monkeypatch.setattr(answer_module, "admit_call", admit_call)
            function()
            return admit_call(request)

        monkeypatch.setattr(answer_module, "admit_call", admit_late)

    return arrange


def test_an_answer_that_comes_just_after_another_one_is_refused(
    asking: Run, principal: Principal, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    meanwhile(lambda: answer_run(principal=principal, run_id=asking.id, answer="red"))
    assert "answered already" in refused(principal, asking)
    assert Run.objects.get().options["answer"] == "red"


def test_an_answer_that_comes_just_after_the_next_question_is_refused(
    asking: Run,
    principal: Principal,
    worker: WorkerProcess,
    meanwhile: Callable[[Callable[[], object]], None],
) -> None:
    def answer_and_resume() -> None:
        answer_run(principal=principal, run_id=asking.id, answer="red")
        worker.work()

    meanwhile(answer_and_resume)
    assert "answered already" in refused(principal, asking)
    assert Run.objects.get().waiting_for["question"] == "Which size?"


def test_a_question_that_expires_is_not_answered_with_the_earlier_answer(
    asking: Run,
    principal: Principal,
    worker: WorkerProcess,
    model: ModelServer,
    agent_settings: Any,
) -> None:
    agent_settings.CONFIRM_TTL_S = -1
    answer_run(principal=principal, run_id=asking.id, answer="red")
    worker.work()
    assert resume_settled_runs() == 1
    worker.work()
    first, second = tool_results(model.requests[-1])
    assert (first["result"]["answer"], second["error"]["code"]) == ("red", "NO_ANSWER")
