"""Takeover: a person takes over the page; no further tool is called, the run's clock stops, and
the run resumes afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F

from decisions.authorization.authorize import ToolCallRequest, admit_call
from decisions.foundation.errors import Conflict
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, Confirmation
from runs.conversations import services
from runs.conversations.maintenance import delete_old_tasks, end_takeovers
from runs.conversations.message_queue import start_waiting_runs
from runs.conversations.services import resume_task, stop_task, take_over_task
from runs.failpoints import hit
from runs.models import Run, Slot, Task, TaskEvent
from runs.queue import leases
from runs.queue.dispatch_order import next_run
from runs.scheduler.retention import delete_old_runs
from runs.worker.worker import WorkerProcess
from tests.support.decisions.confirmations import event_types
from tests.support.runs.concurrent_calls import at_once
from tests.support.runs.waiting import wait_until

MakeTask = Callable[..., str]
SendMessage = Callable[..., dict[str, Any]]
Background = Callable[[Callable[[], object]], Any]


def status(task_id: str) -> str:
    return Task.objects.get(id=task_id).status


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The file that the stand-in's tool writes to."""
    return tmp_path / "notes"


@pytest.fixture
def taken_task_id(
    principal: Principal,
    worker: WorkerProcess,
    make_task: MakeTask,
    notes: Path,
    tmp_path: Path,
    in_background: Background,
) -> str:
    """A task that was taken over between two calls of its run, which is now suspended."""
    gate = tmp_path / "gate"
    task_id = make_task(f"note {notes} a; until {gate}; note {notes} b; say all noted")
    thread = in_background(worker.work)
    wait_until(notes.exists)
    take_over_task(principal=principal, task_id=task_id)
    gate.touch()
    thread.join(30)
    return task_id


def test_a_call_in_flight_ends_and_no_further_tool_is_called(
    taken_task_id: str, notes: Path
) -> None:
    run = Run.objects.get()
    assert notes.read_text() == "a"
    assert (run.status, run.ready, run.lease_owner) == ("running", False, None)
    assert (run.waiting_for or {})["type"] == "takeover"
    assert not Slot.objects.filter(run_id__isnull=False).exists()
    assert (status(taken_task_id), event_types(run)[-1]) == ("takeover", "run.waiting")


def test_the_clock_of_the_run_stops_until_the_page_is_returned(
    taken_task_id: str, principal: Principal, worker: WorkerProcess, notes: Path
) -> None:
    before = Run.objects.get().active_ms
    worker.work()  # no run can be claimed
    assert Run.objects.get().active_ms == before
    assert resume_task(principal=principal, task_id=taken_task_id)["status"] == "running"
    worker.work()
    assert (notes.read_text(), Run.objects.get().status) == ("ab", "succeeded")
    assert status(taken_task_id) == "completed"


def test_a_run_that_has_not_started_does_not_start_during_a_takeover(
    principal: Principal, worker: WorkerProcess, make_task: MakeTask
) -> None:
    task_id = make_task("say hi")
    take_over_task(principal=principal, task_id=task_id)
    worker.work()
    assert (Run.objects.get().status, status(task_id)) == ("queued", "takeover")
    resume_task(principal=principal, task_id=task_id)
    worker.work()
    assert (Run.objects.get().status, status(task_id)) == ("succeeded", "completed")


def test_a_message_during_a_takeover_waits_until_the_page_is_returned(
    principal: Principal, worker: WorkerProcess, make_task: MakeTask, send_message: SendMessage
) -> None:
    task_id = make_task()
    take_over_task(principal=principal, task_id=task_id)
    assert send_message(task_id, "say hi")["queued"] is True
    assert start_waiting_runs() == 0
    worker.work()
    assert status(task_id) == "takeover"
    resume_task(principal=principal, task_id=task_id)
    worker.work()
    assert status(task_id) == "completed"


def test_a_run_that_ends_during_a_takeover_leaves_the_page_with_the_person(
    principal: Principal,
    worker: WorkerProcess,
    make_task: MakeTask,
    send_message: SendMessage,
    tmp_path: Path,
    in_background: Background,
) -> None:
    gate = tmp_path / "gate"
    task_id = make_task(f"use browser_click; until {gate}")
    second = send_message(task_id, "say hi")
    thread = in_background(worker.work)
    wait_until(lambda: Task.objects.get().used_browser)
    take_over_task(principal=principal, task_id=task_id)
    gate.touch()
    thread.join(30)
    assert (Run.objects.filter(status="succeeded").count(), status(task_id)) == (1, "takeover")
    assert not Run.objects.get(id=second["runId"]).ready
    resume_task(principal=principal, task_id=task_id)
    assert Run.objects.get(id=second["runId"]).ready


def test_a_page_returned_before_the_run_suspends_keeps_the_run_running(
    principal: Principal,
    worker: WorkerProcess,
    make_task: MakeTask,
    notes: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task_id = make_task(f"note {notes} a")
    task = Task.objects.filter(id=task_id)

    def resume_before_waiting(name: str) -> None:
        if name == "before_waiting":  # a call was stopped and is about to be recorded
            resume_task(principal=principal, task_id=task_id)
        if name == "step_started" and not notes.exists() and Run.objects.get().epoch == 1:
            take_over_task(principal=principal, task_id=task_id)
        hit(name)

    for module in ("engine", "suspension"):
        monkeypatch.setattr(f"runs.execution.{module}.hit", resume_before_waiting)
    worker.work()
    run = Run.objects.get()
    assert (notes.read_text(), run.status, run.epoch > 1) == ("a", "succeeded", True)
    assert "run.waiting" in event_types(run)
    assert task.get().status == "completed"


def test_a_second_takeover_changes_nothing_and_a_second_return_is_refused(
    principal: Principal, make_task: MakeTask
) -> None:
    task_id = make_task()
    first = take_over_task(principal=principal, task_id=task_id)
    assert take_over_task(principal=principal, task_id=task_id) == first
    assert resume_task(principal=principal, task_id=task_id)["status"] == "created"
    with pytest.raises(Conflict):
        resume_task(principal=principal, task_id=task_id)


def test_a_takeover_that_another_request_ends_meanwhile_is_not_ended_again(
    principal: Principal, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = make_task()
    take_over_task(principal=principal, task_id=task_id)

    def let_another_request_end_it(request: ToolCallRequest) -> Confirmation | None:
        monkeypatch.setattr(services, "admit_call", admit_call)
        resume_task(principal=principal, task_id=task_id)
        return admit_call(request)

    monkeypatch.setattr(services, "admit_call", let_another_request_end_it)
    with pytest.raises(Conflict):
        resume_task(principal=principal, task_id=task_id)
    assert AuditEntry.objects.filter(action="task.resumed").count() == 1


def test_stop_ends_a_takeover(taken_task_id: str, principal: Principal) -> None:
    assert stop_task(principal=principal, task_id=taken_task_id)["status"] == "completed"
    assert Run.objects.get().status == "canceled"


def age_takeovers(minutes: int) -> None:
    Task.objects.update(taken_over_at=F("taken_over_at") - timedelta(minutes=minutes))


def test_a_page_that_is_not_returned_fails_its_run_and_starts_the_next(
    taken_task_id: str, send_message: SendMessage, worker: WorkerProcess
) -> None:
    second = send_message(taken_task_id, "say hi")
    age_takeovers(29)
    assert end_takeovers() == 0
    age_takeovers(2)
    assert end_takeovers() == 1
    failed = Run.objects.get(status="failed")
    assert (failed.error or {})["errorCode"] == "RUN_TIMEOUT"
    assert Run.objects.get(id=second["runId"]).ready
    worker.work()
    assert status(taken_task_id) == "completed"


def test_an_expired_takeover_of_an_idle_task_only_ends(
    taken_task_id: str, principal: Principal, make_task: MakeTask
) -> None:
    idle = make_task()
    take_over_task(principal=principal, task_id=idle)
    age_takeovers(31)
    assert end_takeovers() == 2
    assert (status(taken_task_id), status(idle)) == ("error", "created")
    assert TaskEvent.objects.filter(task_id=taken_task_id).latest("seq").data["status"] == "error"


def test_a_task_is_deleted_after_its_runs(worker: WorkerProcess, make_task: MakeTask) -> None:
    task_id = make_task("say hi")
    worker.work()
    fresh = make_task()
    month = timedelta(days=31)
    Task.objects.filter(id=task_id).update(updated_at=F("updated_at") - month)
    assert delete_old_tasks() == 0  # its run still exists
    Run.objects.update(created_at=F("created_at") - month, ended_at=F("ended_at") - month)
    delete_old_runs()
    assert delete_old_tasks() == 1
    assert list(Task.objects.values_list("id", flat=True)) == [fresh]
    assert not TaskEvent.objects.filter(task_id=task_id).exists()


def test_a_run_held_back_since_it_was_chosen_is_not_claimed(
    principal: Principal,
    worker: WorkerProcess,
    make_task: MakeTask,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task_id = make_task("say hi")

    def take_over_once_chosen(worker_id: str, *, lock: bool) -> Run | None:
        chosen = next_run(worker_id, lock=False)
        if chosen is not None:
            at_once([partial(take_over_task, principal=principal, task_id=task_id)])
        return chosen

    monkeypatch.setattr(leases, "next_run", take_over_once_chosen)
    assert worker.work() == 0
    assert (Run.objects.get().status, status(task_id)) == ("queued", "takeover")
