"""A task's event log: the events of its runs, its messages and status changes, in one order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from runs.conversations.update_returning import not_before, update_returning
from runs.events.notify import publish_after_commit
from runs.lifecycle.changes import NewEvent
from runs.models import Task, TaskEvent


# One transaction: a reader that saw last_seq before its event would wait for that event forever.
@transaction.atomic(savepoint=False)
def append_events(
    task_id: str,
    events: Sequence[NewEvent],
    values: Mapping[str, Any] | None = None,
    *,
    guard: Mapping[str, Any] | None = None,
) -> bool:
    """Append events to the task's log, in the caller's transaction or one of its own, and notify
    listeners after the commit; return whether they were written.

    The seq is assigned under the task's row lock, so it has no gaps and follows the commit order.

    Args:
        values: columns of the task to set as well.
        guard: columns and the values that they must have; otherwise nothing is written.
    """
    now = datetime.now(UTC)
    changed = update_returning(
        Task.objects.filter(id=task_id, **(guard or {})),
        {
            **(values or {}),
            "last_seq": F("last_seq") + len(events),
            "updated_at": not_before("updated_at", now),
        },
        ("last_seq",),
    )
    if not changed:
        return False
    last = int(changed[0][0])
    TaskEvent.objects.bulk_create(
        TaskEvent(task_id=task_id, seq=seq, type=event.type, at=now, data=dict(event.data))
        for seq, event in enumerate(events, start=last - len(events) + 1)
    )
    if events:
        publish_after_commit(task_id, last, [event.type for event in events])
    return True
