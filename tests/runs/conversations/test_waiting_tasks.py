"""Tasks whose run waits for a person: how the next messages are used, and the task status."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.errors import InvalidInput
from decisions.identity.principals import Principal
from runs.conversations.message_queue import make_claimable
from runs.conversations.selectors import get_task
from runs.conversations.services import resume_task, stop_task, take_over_task
from runs.live.no_page import CLOSED, GIVE_BACK, LOST, NO_PAGE, REOPENS, no_page_reason
from runs.models import Run, RunStep, Task, TaskMessage
from runs.submission.answer import answer_run
from runs.worker.worker import WorkerProcess
from tests.support.runs.concurrent_calls import at_once
from tests.support.runs.waiting import wait_until

MakeTask = Callable[..., str]
SendMessage = Callable[..., dict[str, Any]]
Background = Callable[[Callable[[], object]], Any]


def status(task_id: str) -> str:
    return Task.objects.get(id=task_id).status


def conversation(principal: Principal, task_id: str) -> list[tuple[str, str]]:
    shown = get_task(principal=principal, task_id=task_id)
    return [(message["role"], message["content"]) for message in shown["messages"]]


@pytest.fixture
def asking_task_id(worker: WorkerProcess, make_task: MakeTask) -> str:
    """A task whose run has asked its user a question."""
    task_id = make_task("ask when?; say thanks")
    worker.work()
    assert Run.objects.get().waiting_for["question"] == "when?"
    return task_id


@pytest.fixture
def confirming_task_id(worker: WorkerProcess, make_task: MakeTask, tmp_path: Path) -> str:
    """A task whose run waits for the confirmation of a call."""
    create_rule(RuleFields("confirm", tool="test_note", reason="test"), actor="t")
    task_id = make_task(f"note {tmp_path / 'notes'} a; say noted")
    worker.work()
    assert Run.objects.get().waiting_for["type"] == "confirmation"
    return task_id


def test_one_of_many_concurrent_messages_is_the_answer_and_the_others_start_runs(
    worker: WorkerProcess, asking_task_id: str, send_message: SendMessage
) -> None:
    sent = at_once([partial(send_message, asking_task_id, f"say {n}") for n in range(6)])
    assert len({message["runId"] for message in sent}) == 6
    worker.work()
    assert set(Run.objects.values_list("status", flat=True)) == {"succeeded"}
    assert (Run.objects.count(), status(asking_task_id)) == (6, "completed")


def test_a_message_that_comes_after_another_answer_becomes_a_run(
    principal: Principal,
    worker: WorkerProcess,
    asking_task_id: str,
    send_message: SendMessage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_id = Run.objects.get().id
    answer = partial(answer_run, principal=principal, run_id=run_id, answer="now")

    def answer_after_another(**options: Any) -> Any:
        # The answer sent directly to the run comes first.
        monkeypatch.setattr("runs.conversations.services.answer_run", answer_run)
        answer()
        return answer_run(**options)

    monkeypatch.setattr("runs.conversations.services.answer_run", answer_after_another)
    sent = send_message(asking_task_id, "say this")
    assert sent["runId"] != run_id
    worker.work()
    assert Run.objects.get(id=sent["runId"]).status == "succeeded"


def test_a_message_that_refuses_to_wait_can_still_be_the_answer(
    worker: WorkerProcess, asking_task_id: str, send_message: SendMessage
) -> None:
    assert send_message(asking_task_id, "at two", on_busy="refuse")["runId"] == Run.objects.get().id
    worker.work()
    assert Run.objects.get().status == "succeeded"


def test_an_answer_with_an_output_schema_is_refused(
    asking_task_id: str, send_message: SendMessage
) -> None:
    with pytest.raises(InvalidInput, match="outputSchema") as refused:
        send_message(asking_task_id, "at two", output_schema={"type": "object"})
    run = Run.objects.get()
    assert refused.value.details == {"runId": run.id}
    assert run.waiting_for["question"] == "when?"
    assert TaskMessage.objects.filter(task_id=asking_task_id, content="at two").count() == 0


def test_a_page_lost_while_a_question_waits_is_reported_as_lost(
    principal: Principal, asking_task_id: str
) -> None:
    assert no_page_reason(asking_task_id) == NO_PAGE
    RunStep.objects.filter(status="pending").update(paused={"hadPage": True})
    assert no_page_reason(asking_task_id) == f"{LOST} {REOPENS}"
    take_over_task(principal=principal, task_id=asking_task_id)
    assert no_page_reason(asking_task_id) == f"{LOST} {GIVE_BACK}"
    Run.objects.update(pinned_worker="w1")
    assert no_page_reason(asking_task_id) == f"{CLOSED} {GIVE_BACK}"


def test_a_question_is_stored_as_a_message(
    principal: Principal, worker: WorkerProcess, asking_task_id: str, send_message: SendMessage
) -> None:
    assert conversation(principal, asking_task_id)[1:] == [("assistant", "when?")]
    send_message(asking_task_id, "at two")
    worker.work()
    assert conversation(principal, asking_task_id)[1:] == [
        ("assistant", "when?"),
        ("user", "at two"),
        ("assistant", "thanks"),
    ]


def test_an_answer_sent_directly_to_the_run_is_stored_as_a_message(
    principal: Principal, worker: WorkerProcess, asking_task_id: str
) -> None:
    answer_run(principal=principal, run_id=Run.objects.get().id, answer="at two")
    assert (conversation(principal, asking_task_id)[-1], status(asking_task_id)) == (
        ("user", "at two"),
        "running",
    )
    worker.work()
    assert status(asking_task_id) == "completed"


def test_a_queued_message_does_not_change_the_status_of_a_waiting_task(
    principal: Principal, confirming_task_id: str, send_message: SendMessage
) -> None:
    assert status(confirming_task_id) == "ongoing"
    assert send_message(confirming_task_id, "say more")["queued"] is True
    assert status(confirming_task_id) == "ongoing"
    shown = get_task(principal=principal, task_id=confirming_task_id)
    assert (shown["waitingFor"]["type"], shown["queued"]) == ("confirmation", 1)


def test_a_task_resumed_while_its_run_waits_for_the_user_is_ongoing(
    principal: Principal, asking_task_id: str
) -> None:
    take_over_task(principal=principal, task_id=asking_task_id)
    assert resume_task(principal=principal, task_id=asking_task_id)["status"] == "ongoing"


@pytest.mark.parametrize("end_takeover", [resume_task, stop_task])
def test_a_run_that_failed_during_a_takeover_sets_the_status_error(
    principal: Principal,
    worker: WorkerProcess,
    make_task: MakeTask,
    tmp_path: Path,
    in_background: Background,
    end_takeover: Callable[..., dict[str, Any]],
) -> None:
    gate = tmp_path / "gate"
    task_id = make_task(f"until {gate}; fail")
    thread = in_background(worker.work)
    wait_until(lambda: Run.objects.get().status == "running")
    take_over_task(principal=principal, task_id=task_id)
    gate.touch()
    thread.join(30)
    assert (Run.objects.get().status, status(task_id)) == ("failed", "takeover")
    assert end_takeover(principal=principal, task_id=task_id)["status"] == "error"


def test_an_interrupt_starts_no_run_that_it_then_cancels(
    make_task: MakeTask, send_message: SendMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = make_task("say one")
    for n in range(5):
        send_message(task_id, f"say more {n}")
    claimable: list[str] = []

    def record_run(run: Run) -> None:
        claimable.append(run.id)
        make_claimable(run)

    monkeypatch.setattr("runs.conversations.message_queue.make_claimable", record_run)
    sent = send_message(task_id, "say last", on_busy="interrupt")
    assert claimable == [sent["runId"]]


def test_concurrent_messages_are_numbered_without_gaps(
    worker: WorkerProcess, asking_task_id: str, send_message: SendMessage
) -> None:
    at_once([partial(send_message, asking_task_id, f"say {n}") for n in range(4)])
    worker.work()
    numbers = TaskMessage.objects.order_by("number").values_list("number", flat=True)
    assert list(numbers) == list(range(1, Task.objects.get().messages_count + 1))
