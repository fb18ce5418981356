"""Tasks: each message becomes one run, runs execute in order, and the task status follows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.authorization.sealed_arguments import open_arguments
from decisions.foundation.errors import ConfirmationRequired, Conflict
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, Decision
from runs.agent.history import messages_before
from runs.conversations.errors import TaskBusy, TaskNotFound
from runs.conversations.log import append_events
from runs.conversations.message_queue import start_waiting_runs
from runs.conversations.selectors import get_task, list_task_events, list_tasks
from runs.conversations.services import (
    add_message,
    create_task,
    stop_task,
)
from runs.lifecycle.changes import NewEvent
from runs.models import Run, Task, TaskEvent, TaskMessage
from runs.submission.cancel import cancel_run
from runs.submission.retry import retry_run
from runs.worker.worker import WorkerProcess
from tests.support.decisions.confirmations import confirm

MakeTask = Callable[..., str]
SendMessage = Callable[..., dict[str, Any]]
Background = Callable[[Callable[[], object]], Any]


def event_types(task_id: str) -> list[str]:
    rows = TaskEvent.objects.filter(task_id=task_id).order_by("seq")
    seqs = list(rows.values_list("seq", flat=True))
    assert seqs == list(range(1, Task.objects.get(id=task_id).last_seq + 1))
    return list(rows.values_list("type", flat=True))


def status(task_id: str) -> str:
    return Task.objects.get(id=task_id).status


def conversation(principal: Principal, task_id: str) -> list[tuple[str, str]]:
    shown = get_task(principal=principal, task_id=task_id)
    return [(message["role"], message["content"]) for message in shown["messages"]]


def test_an_event_number_and_its_event_commit_together_or_not_at_all(make_task: MakeTask) -> None:
    task_id = make_task()
    with pytest.raises(TypeError):
        append_events(task_id, [NewEvent("chatDelta", {"content": object()})])
    assert event_types(task_id) == []  # otherwise a reader waits forever for the missing number


def test_a_task_without_a_message_waits_for_its_first(
    principal: Principal, make_task: MakeTask
) -> None:
    task_id = make_task()
    assert (status(task_id), conversation(principal, task_id)) == ("created", [])
    assert not Run.objects.exists()


def test_a_credential_in_a_message_is_in_no_title_event_audit_row_or_answer(
    principal: Principal, make_task: MakeTask
) -> None:
    task_id = make_task("Read http://127.0.0.1:1/?access_token=canary-8a1f0c93 now.")
    masked = "Read http://127.0.0.1:1/?access_token=*** now."
    assert conversation(principal, task_id) == [("user", masked)]
    written = [Task.objects.get(id=task_id).title]
    written += TaskEvent.objects.filter(task_id=task_id).values_list("data", flat=True)
    written += AuditEntry.objects.values_list("metadata", flat=True)
    assert "canary" not in str(written)
    assert masked in written


def test_a_message_becomes_a_run_and_its_answer_becomes_a_message(
    principal: Principal, worker: WorkerProcess, make_task: MakeTask
) -> None:
    task_id = make_task("say it is done")
    assert status(task_id) == "running"
    worker.work()
    assert status(task_id) == "completed"
    assert conversation(principal, task_id) == [
        ("user", "say it is done"),
        ("assistant", "it is done"),
    ]
    run = Run.objects.get()
    assert (run.task_id, run.inputs) == (task_id, {"goal": "say it is done", "taskId": task_id})


def test_the_log_has_messages_run_events_and_status_updates(
    worker: WorkerProcess, make_task: MakeTask
) -> None:
    task_id = make_task("say it; use browser_click; output 42")
    worker.work()
    types = event_types(task_id)
    assert types[:3] == ["message", "run.queued", "statusUpdate"]
    run_types = ("step", "run.", "arti")
    assert [type_ for type_ in types if type_[:4] not in run_types][2:] == [
        "chatDelta",
        "chatDelta",
        "toolUsed",
        "toolUsed",
        "structuredOutput",
        "message",
        "statusUpdate",
    ]
    of_runs = TaskEvent.objects.filter(task_id=task_id).exclude(data__has_key="messageId")
    assert {event.data["runId"] for event in of_runs} == {Run.objects.get().id}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("say hi", "completed"),
        ("use browser_click", "ongoing"),
        ("use task_start", "ongoing"),
        ("use read_file", "completed"),
        ("fail", "error"),
        ("use browser_click; fail", "error"),
    ],
)
def test_the_outcome_of_a_run_sets_the_status_of_its_task(
    worker: WorkerProcess, make_task: MakeTask, message: str, expected: str
) -> None:
    task_id = make_task(message)
    worker.work()
    assert status(task_id) == expected


def test_browser_use_of_an_earlier_run_does_not_affect_the_next_status(
    worker: WorkerProcess, make_task: MakeTask, send_message: SendMessage
) -> None:
    task_id = make_task("use browser_click")
    worker.work()
    send_message(task_id, "say hi")
    worker.work()
    assert status(task_id) == "completed"


def test_a_second_message_waits_for_the_end_of_the_first_run(
    worker: WorkerProcess, make_task: MakeTask, send_message: SendMessage, principal: Principal
) -> None:
    task_id = make_task("say one")
    second = send_message(task_id, "say two")
    third = send_message(task_id, "say three")
    assert (second["queued"], third["queued"]) == (True, True)
    assert Run.objects.filter(ready=True).count() == 1
    worker.work()
    ended = Run.objects.order_by("ended_at").values_list("inputs__goal", flat=True)
    assert list(ended) == ["say one", "say two", "say three"]
    times = Run.objects.order_by("started_at").values_list("started_at", "ended_at")
    timestamps = [at for start_and_end in times for at in start_and_end if at is not None]
    assert timestamps == sorted(timestamps)
    assert [content for _, content in conversation(principal, task_id)][3:] == [
        "one",
        "two",
        "three",
    ]
    assert status(task_id) == "completed"


def test_a_failed_run_starts_the_run_of_the_next_message(
    worker: WorkerProcess, make_task: MakeTask, send_message: SendMessage
) -> None:
    task_id = make_task("fail")
    send_message(task_id, "say two")
    worker.work()
    assert status(task_id) == "completed"
    assert "error" not in [
        event.data["status"] for event in TaskEvent.objects.filter(type="statusUpdate")
    ]


def test_a_message_can_refuse_to_wait(make_task: MakeTask, send_message: SendMessage) -> None:
    task_id = make_task("say one")
    with pytest.raises(TaskBusy):
        send_message(task_id, "say two", on_busy="refuse")
    assert (Run.objects.count(), TaskMessage.objects.count()) == (1, 1)


def test_a_message_can_interrupt_the_runs_before_it(
    worker: WorkerProcess, make_task: MakeTask, send_message: SendMessage
) -> None:
    task_id = make_task("say one")
    send_message(task_id, "say two")
    sent = send_message(task_id, "say three", on_busy="interrupt")
    assert sent["queued"] is False
    statuses = dict(Run.objects.values_list("inputs__goal", "status"))
    assert statuses == {"say one": "canceled", "say two": "canceled", "say three": "queued"}
    worker.work()
    assert (Run.objects.get(id=sent["runId"]).status, status(task_id)) == ("succeeded", "completed")


def test_a_repeated_key_returns_the_same_message_and_conflicts_with_another_text(
    make_task: MakeTask, send_message: SendMessage
) -> None:
    task_id = make_task()
    first = send_message(task_id, "say one", key="k")
    again = send_message(task_id, "say one", key="k")
    assert (first["deduplicated"], again["deduplicated"]) == (False, True)
    assert again["message"] == first["message"]
    with pytest.raises(Conflict):
        send_message(task_id, "say two", key="k")
    assert Run.objects.count() == 1


def test_a_repeated_key_creates_one_task(make_task: MakeTask) -> None:
    assert make_task("say one", key="k") == make_task("say one", key="k")
    assert (Task.objects.count(), Run.objects.count()) == (1, 1)


def test_a_repeated_key_with_another_first_message_is_a_conflict(make_task: MakeTask) -> None:
    make_task("say one", key="k")
    make_task(key="silent")
    for key in ("k", "silent"):
        with pytest.raises(Conflict):
            make_task("say two", key=key)
    assert (Task.objects.count(), Run.objects.count()) == (2, 1)


def test_stop_ends_the_running_run_and_the_queued_ones(
    worker: WorkerProcess, principal: Principal, make_task: MakeTask, send_message: SendMessage
) -> None:
    task_id = make_task("say one")
    send_message(task_id, "say two")
    assert stop_task(principal=principal, task_id=task_id)["status"] == "completed"
    assert set(Run.objects.values_list("status", flat=True)) == {"canceled"}
    worker.work()
    send_message(task_id, "say three")
    worker.work()
    assert status(task_id) == "completed"


def test_a_canceled_run_starts_the_next_one(
    principal: Principal, make_task: MakeTask, send_message: SendMessage
) -> None:
    task_id = make_task("say one")
    second = send_message(task_id, "say two")
    cancel_run(principal=principal, run_id=Run.objects.get(inputs__goal="say one").id)
    assert Run.objects.get(id=second["runId"]).ready
    assert status(task_id) == "running"


def test_a_run_of_a_task_cannot_be_retried_outside_the_task(
    principal: Principal, worker: WorkerProcess, make_task: MakeTask
) -> None:
    task_id = make_task("fail")
    worker.work()
    with pytest.raises(Conflict) as refused:
        retry_run(principal=principal, run_id=Run.objects.get().id)
    assert (refused.value.details, Run.objects.count()) == ({"taskId": task_id}, 1)


def test_a_run_whose_start_was_missed_is_started_later(
    make_task: MakeTask, send_message: SendMessage
) -> None:
    task_id = make_task("say one")
    second = send_message(task_id, "say two")
    assert start_waiting_runs() == 0  # the run before it has not ended
    Run.objects.filter(inputs__goal="say one").delete()
    assert start_waiting_runs() == 1
    assert Run.objects.get(id=second["runId"]).ready


def test_a_task_of_another_workspace_is_not_found(outsider: Principal, make_task: MakeTask) -> None:
    task_id = make_task("say one")
    calls: list[Callable[[], Any]] = [
        lambda: get_task(principal=outsider, task_id=task_id),
        lambda: list_task_events(principal=outsider, run_id=task_id),
        lambda: add_message(principal=outsider, task_id=task_id, content="x"),
        lambda: stop_task(principal=outsider, task_id=task_id),
    ]
    for call in calls:
        with pytest.raises(TaskNotFound):
            call()
    assert list_tasks(principal=outsider)["total"] == 0


def test_a_message_that_the_template_refuses_leaves_no_rows(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.conversations.services.TEMPLATE", "test_none")
    with pytest.raises(Exception, match="There is no template"):
        create_task(principal=principal, message="say one")
    assert not Task.objects.exists()


def test_the_schema_of_the_answer_is_part_of_what_a_person_confirms(principal: Principal) -> None:
    fields = RuleFields("confirm", "everywhere", tool="create_task", reason="test")
    create_rule(fields, actor="test")
    schema = {"type": "object", "description": "a"}
    with pytest.raises(ConfirmationRequired):
        create_task(principal=principal, message="say one", output_schema=schema, key="k")
    decision = Decision.objects.get()
    assert open_arguments(decision)["outputSchema"] == schema
    confirm(decision_id=decision.pk, by="admin:ann", how="admin")
    other = {**schema, "description": "b"}
    with pytest.raises(ConfirmationRequired):
        create_task(principal=principal, message="say one", output_schema=other, key="k")
    assert create_task(principal=principal, message="say one", output_schema=schema, key="k")[1]


def test_a_run_reads_the_messages_before_it(
    worker: WorkerProcess, make_task: MakeTask, send_message: SendMessage
) -> None:
    task_id = make_task("say one")
    worker.work()
    second = send_message(task_id, "say two")
    send_message(task_id, "say three")
    before = messages_before(task_id=task_id, run_id=second["runId"])
    assert [(message.role, message.content) for message in before] == [
        ("user", "say one"),
        ("assistant", "one"),
    ]


def test_a_step_reads_the_messages_before_it(
    worker: WorkerProcess, make_task: MakeTask, send_message: SendMessage
) -> None:
    task_id = make_task("say one")
    send_message(task_id, "recall")
    worker.work()
    deltas = TaskEvent.objects.filter(task_id=task_id, type="chatDelta").order_by("seq")
    text = "".join(data["content"] for data in deltas.values_list("data", flat=True))
    assert text == "one say one, one "  # the step's own words, then the earlier ones


def test_actions_and_status_changes_of_a_task_are_audited(
    worker: WorkerProcess, principal: Principal, make_task: MakeTask
) -> None:
    task_id = make_task("say one")
    worker.work()
    stop_task(principal=principal, task_id=task_id)
    rows = AuditEntry.objects.filter(resource_type="task", resource_id=task_id).order_by("id")
    assert list(rows.values_list("action", flat=True)) == [
        "task.created",
        "task.message_added",
        "task.status_changed",
        "task.status_changed",
        "task.stopped",
    ]


def test_a_local_message_gives_a_remote_callers_task_no_local_trust(
    remote: Principal, talk_template: None, send_message: SendMessage
) -> None:
    task, _ = create_task(principal=remote, message="say one")
    send_message(task["taskId"], "say two")
    trust = dict(Run.objects.values_list("inputs__goal", "trust"))
    assert trust == {"say one": "remote", "say two": "remote"}
