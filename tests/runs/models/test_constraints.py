"""The database refuses rows that contradict each other, whatever code writes them. The columns of a
run: lifecycle/test_state_machine.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, connection, transaction

from decisions.identity.principals import Principal
from runs.conversations.services import create_task
from runs.models import (
    Run,
    RunEvent,
    RunStep,
    RunTotal,
    Slot,
    Task,
    TaskEvent,
    TaskMessage,
    Webhook,
    WebhookDelivery,
)
from runs.webhooks.services import create_webhook

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def two_steps(run: Run) -> None:
    for name in ("first", "second"):
        RunStep.objects.create(run=run, index=0, name=name, effect="read", effect_key=name)


def two_run_events(run: Run) -> None:
    for _ in range(2):
        RunEvent.objects.create(run=run, seq=1, type="run.queued", at=NOW)


def two_task_events(task: Task) -> None:
    for _ in range(2):
        TaskEvent.objects.create(task=task, seq=1, type="message", at=NOW)


def message(task: Task, number: int, key: str | None = None) -> None:
    TaskMessage.objects.create(
        id=f"tmsg_{number}_{TaskMessage.objects.count()}",
        task=task,
        number=number,
        role="user",
        content="hi",
        principal_id="local",
        key=key,
        at=NOW,
    )


def two_messages(task: Task, *, numbers: tuple[int, int], key: str | None = None) -> None:
    for number in numbers:
        message(task, number, key)


def two_totals() -> None:
    for _ in range(2):
        RunTotal.objects.create(workspace_id="w", template_id="t", status="queued", number=1)


def two_retries(run: Run) -> None:
    for run_id in ("run_first", "run_second"):
        run.pk, run.retry_of = run_id, "run_failed"
        run.save(force_insert=True)


def delivery(**columns: object) -> None:
    webhook = Webhook.objects.get()
    WebhookDelivery.objects.create(
        id="msg_1", webhook=webhook, event="x", next_try_at=NOW, created_at=NOW, **columns
    )


REFUSED: dict[str, Callable[[Run, Task], object]] = {
    "step_status_known": lambda run, task: RunStep.objects.create(
        run=run, index=0, name="n", effect="read", effect_key="k", status="finished"
    ),
    "step_index_per_run": lambda run, task: two_steps(run),
    "event_seq_per_run": lambda run, task: two_run_events(run),
    "runs_slot_run_id_key": lambda run, task: Slot.objects.update(run_id=run.id),
    "run_is_retried_once": lambda run, task: two_retries(run),
    "task_status_known": lambda run, task: Task.objects.update(status="finished"),
    "task_takeover_has_its_time": lambda run, task: Task.objects.update(status="takeover"),
    "task_event_seq_per_task": lambda run, task: two_task_events(task),
    "message_number_per_task": lambda run, task: two_messages(task, numbers=(1, 1)),
    "message_key_per_task": lambda run, task: two_messages(task, numbers=(1, 2), key="k"),
    "delivery_status_known": lambda run, task: delivery(run=run, status="lost"),
    "delivery_tells_one_thing": lambda run, task: delivery(run=run, decision_id=1),
    "run_total_once": lambda run, task: two_totals(),
}

# SQLite names the columns of a unique constraint instead of the constraint.
SQLITE_COLUMNS = {
    "step_index_per_run": "runs_runstep.run_id, runs_runstep.index",
    "event_seq_per_run": "runs_runevent.run_id, runs_runevent.seq",
    "runs_slot_run_id_key": "runs_slot.run_id",
    "run_is_retried_once": "runs_run.retry_of",
    "task_event_seq_per_task": "runs_taskevent.task_id, runs_taskevent.seq",
    "message_number_per_task": "runs_taskmessage.task_id, runs_taskmessage.number",
    "message_key_per_task": (
        "runs_taskmessage.task_id, runs_taskmessage.principal_id, runs_taskmessage.key"
    ),
    "run_total_once": (
        "runs_runtotal.workspace_id, runs_runtotal.template_id, runs_runtotal.status"
    ),
}


def refusal(constraint: str) -> str:
    """Return a pattern of the message with which the database refuses a row."""
    if connection.vendor == "sqlite" and constraint in SQLITE_COLUMNS:
        return f"UNIQUE constraint failed: {re.escape(SQLITE_COLUMNS[constraint])}$"
    return rf"\b{constraint}\b"


@pytest.mark.parametrize("constraint", REFUSED)
def test_the_database_refuses_a_row(
    make_run: Callable[..., Run], principal: Principal, constraint: str
) -> None:
    create_webhook(principal=principal, url="http://127.0.0.1:9/")
    create_task(principal=principal, title="a task")
    run, task = make_run(), Task.objects.get()
    with pytest.raises(IntegrityError, match=refusal(constraint)), transaction.atomic():
        REFUSED[constraint](run, task)
