"""Tasks whose run waits for a person: how the next messages are used, and the task status."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.errors import InvalidInput
from decisions.identity.principals import Principal
from runs.conversations.message_queue import make_claimable
from runs.conversations.selectors import get_task
from runs.conversations.services import resume_task, stop_task, take_over_task
from runs.live.no_page import CLOSED, GIVE_BACK, LOST, NO_PAGE, REOPENS, no_page_reason
from runs.models import Run, RunStep, Task, TaskMessage
from runs.submission.answer import answer_run
from runs.worker.worker import WorkerProcess
from tests.integration.racing import at_once
from tests.support.waiting import wait_until

pytest_plugins = ["tests.support.task_fixtures"]
Make = Callable[..., str]
Say = Callable[..., dict[str, Any]]
Background = Callable[[Callable[[], object]], Any]


def status(task_id: str) -> str:
    return Task.objects.get(id=task_id).status


def talk(principal: Principal, task_id: str) -> list[tuple[str, str]]:
    shown = get_task(principal=principal, task_id=task_id)
    return [(said["role"], said["content"]) for said in shown["messages"]]


@pytest.fixture
def asking(worker: WorkerProcess, make_task: Make) -> str:
    """A task whose run has asked its user a question."""
    task_id = make_task("ask when?; say thanks")
    worker.work()
    assert Run.objects.get().waiting_for["question"] == "when?"
    return task_id


@pytest.fixture
def confirming(worker: WorkerProcess, make_task: Make, tmp_path: Path) -> str:
    """A task whose run waits for the confirmation of a call."""
    create_rule(RuleFields("confirm", tool="test_note"), actor="t")
    task_id = make_task(f"note {tmp_path / 'notes'} a; say noted")
    worker.work()
    assert Run.objects.get().waiting_for["type"] == "confirmation"
    return task_id


def test_one_of_many_concurrent_messages_is_the_answer_and_the_others_start_runs(
    worker: WorkerProcess, asking: str, send_message: Say
) -> None:
    told = at_once([partial(send_message, asking, f"say {n}") for n in range(6)])
    assert len({one["runId"] for one in told}) == 6
    worker.work()
    assert set(Run.objects.values_list("status", flat=True)) == {"succeeded"}
    assert (Run.objects.count(), status(asking)) == (6, "completed")


def test_a_message_that_comes_after_another_answer_becomes_a_run(
    principal: Principal,
    worker: WorkerProcess,
    asking: str,
    send_message: Say,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_id = Run.objects.get().id
    answer = partial(answer_run, principal=principal, run_id=run_id, answer="now")

    def late(**options: Any) -> Any:  # the answer sent directly to the run comes first
        monkeypatch.setattr("runs.conversations.services.answer_run", answer_run)
        answer()
        return answer_run(**options)

    monkeypatch.setattr("runs.conversations.services.answer_run", late)
    told = send_message(asking, "say mine")
    assert told["runId"] != run_id
    worker.work()
    assert Run.objects.get(id=told["runId"]).status == "succeeded"


def test_a_message_that_refuses_to_wait_can_still_be_the_answer(
    worker: WorkerProcess, asking: str, send_message: Say
) -> None:
    assert send_message(asking, "at two", on_busy="refuse")["runId"] == Run.objects.get().id
    worker.work()
    assert Run.objects.get().status == "succeeded"


def test_an_answer_with_an_output_schema_is_refused(asking: str, send_message: Say) -> None:
    with pytest.raises(InvalidInput, match="outputSchema") as refused:
        send_message(asking, "at two", output_schema={"type": "object"})
    waiting = Run.objects.get()
    assert refused.value.details == {"runId": waiting.id}
    assert waiting.waiting_for["question"] == "when?"
    assert TaskMessage.objects.filter(task_id=asking, content="at two").count() == 0


def test_a_page_lost_while_a_question_waits_is_reported_as_lost(
    principal: Principal, asking: str
) -> None:
    assert no_page_reason(asking) == NO_PAGE
    RunStep.objects.filter(status="pending").update(paused={"hadPage": True})
    assert no_page_reason(asking) == f"{LOST} {REOPENS}"
    take_over_task(principal=principal, task_id=asking)
    assert no_page_reason(asking) == f"{LOST} {GIVE_BACK}"
    Run.objects.update(pinned_worker="w1")
    assert no_page_reason(asking) == f"{CLOSED} {GIVE_BACK}"


def test_a_question_is_stored_as_a_message(
    principal: Principal, worker: WorkerProcess, asking: str, send_message: Say
) -> None:
    assert talk(principal, asking)[1:] == [("assistant", "when?")]
    send_message(asking, "at two")
    worker.work()
    assert talk(principal, asking)[1:] == [
        ("assistant", "when?"),
        ("user", "at two"),
        ("assistant", "thanks"),
    ]


def test_an_answer_sent_directly_to_the_run_is_stored_as_a_message(
    principal: Principal, worker: WorkerProcess, asking: str
) -> None:
    answer_run(principal=principal, run_id=Run.objects.get().id, answer="at two")
    assert (talk(principal, asking)[-1], status(asking)) == (("user", "at two"), "running")
    worker.work()
    assert status(asking) == "completed"


def test_a_queued_message_does_not_change_the_status_of_a_waiting_task(
    principal: Principal, confirming: str, send_message: Say
) -> None:
    assert status(confirming) == "ongoing"
    assert send_message(confirming, "say more")["queued"] is True
    assert status(confirming) == "ongoing"
    shown = get_task(principal=principal, task_id=confirming)
    assert (shown["waitingFor"]["type"], shown["queued"]) == ("confirmation", 1)


def test_a_task_resumed_while_its_run_waits_for_the_user_is_ongoing(
    principal: Principal, asking: str
) -> None:
    take_over_task(principal=principal, task_id=asking)
    assert resume_task(principal=principal, task_id=asking)["status"] == "ongoing"


@pytest.mark.parametrize("how", [resume_task, stop_task])
def test_a_run_that_failed_during_a_takeover_sets_the_status_error(
    principal: Principal,
    worker: WorkerProcess,
    make_task: Make,
    tmp_path: Path,
    in_background: Background,
    how: Callable[..., dict[str, Any]],
) -> None:
    gate = tmp_path / "gate"
    task_id = make_task(f"until {gate}; fail")
    working = in_background(worker.work)
    wait_until(lambda: Run.objects.get().status == "running")
    take_over_task(principal=principal, task_id=task_id)
    gate.touch()
    working.join(30)
    assert (Run.objects.get().status, status(task_id)) == ("failed", "takeover")
    assert how(principal=principal, task_id=task_id)["status"] == "error"


def test_an_interrupt_starts_no_run_that_it_then_cancels(
    make_task: Make, send_message: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = make_task("say one")
    for n in range(5):
        send_message(task_id, f"say more {n}")
    woken: list[str] = []

    def note(run: Run) -> None:
        woken.append(run.id)
        make_claimable(run)

    monkeypatch.setattr("runs.conversations.message_queue.make_claimable", note)
    told = send_message(task_id, "say last", on_busy="interrupt")
    assert woken == [told["runId"]]


def test_concurrent_messages_are_numbered_without_gaps(
    worker: WorkerProcess, asking: str, send_message: Say
) -> None:
    at_once([partial(send_message, asking, f"say {n}") for n in range(4)])
    worker.work()
    numbers = TaskMessage.objects.order_by("number").values_list("number", flat=True)
    assert list(numbers) == list(range(1, Task.objects.get().messages_count + 1))
