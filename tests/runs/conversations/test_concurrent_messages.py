"""Concurrent calls in one task: each message gets one answer, and the log has no gap."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from decisions.identity.principals import Principal
from runs.conversations.message_queue import start_waiting_runs
from runs.conversations.services import resume_task, stop_task, take_over_task
from runs.models import Run, Task, TaskEvent, TaskMessage
from runs.worker.worker import WorkerProcess
from tests.support.runs.concurrent_calls import at_once

MakeTask = Callable[..., str]
SendMessage = Callable[..., dict[str, Any]]
Background = Callable[[Callable[[], object]], Any]


def check_log(task_id: str) -> None:
    seqs = TaskEvent.objects.filter(task_id=task_id).order_by("seq").values_list("seq", flat=True)
    assert list(seqs) == list(range(1, Task.objects.get(id=task_id).last_seq + 1))


def status(task_id: str) -> str:
    return Task.objects.get(id=task_id).status


def test_concurrent_messages_each_get_one_answer(
    worker: WorkerProcess, make_task: MakeTask, send_message: SendMessage
) -> None:
    task_id = make_task()
    sent = at_once([partial(send_message, task_id, f"say {n}") for n in range(8)])
    assert [message["queued"] for message in sent].count(False) == 1
    assert sorted(TaskMessage.objects.values_list("number", flat=True)) == list(range(1, 9))
    worker.work()
    assert set(Run.objects.values_list("status", flat=True)) == {"succeeded"}
    check_log(task_id)


def test_concurrent_messages_with_one_key_are_one_message(
    make_task: MakeTask, send_message: SendMessage
) -> None:
    task_id = make_task()
    sent = at_once([lambda: send_message(task_id, "say one", key="k")] * 8)
    assert len({message["message"]["id"] for message in sent}) == 1
    assert [message["deduplicated"] for message in sent].count(False) == 1
    assert Run.objects.count() == 1


def test_a_task_still_works_after_concurrent_messages_stops_and_takeovers(
    worker: WorkerProcess,
    principal: Principal,
    make_task: MakeTask,
    send_message: SendMessage,
    in_background: Background,
) -> None:
    task_id = make_task("say one")
    resume = partial(resume_task, principal=principal, task_id=task_id)
    calls: list[Callable[[], Any]] = [
        partial(send_message, task_id, "say two"),
        partial(send_message, task_id, "say three", on_busy="interrupt"),
        partial(stop_task, principal=principal, task_id=task_id),
        partial(take_over_task, principal=principal, task_id=task_id),
    ]
    for _ in range(3):
        thread = in_background(worker.work)
        at_once(calls)
        resume() if status(task_id) == "takeover" else None
        thread.join(30)
    start_waiting_runs()
    send_message(task_id, "say last")
    worker.work()
    assert not Run.objects.filter(ended_at__isnull=True).exists()
    assert Run.objects.get(inputs__goal="say last").status == "succeeded"
    assert status(task_id) == "completed"
    check_log(task_id)


def test_concurrent_requests_with_one_key_create_one_task(make_task: MakeTask) -> None:
    task_ids = at_once([lambda: make_task("say one", key="k")] * 8)
    assert len(set(task_ids)) == 1
    assert (Task.objects.count(), Run.objects.count()) == (1, 1)
