"""A task's log: what its runs tell, and what is said in it, in one order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from runs.events.notify import publish_after_commit
from runs.lifecycle.changes import NewEvent
from runs.lifecycle.update_returning import not_before, update_returning
from runs.models import Task, TaskEvent


@transaction.atomic(savepoint=False)  # a number that is seen before its event is never read
def append_events(
    task_id: str,
    events: Sequence[NewEvent],
    values: Mapping[str, Any] | None = None,
    *,
    guard: Mapping[str, Any] | None = None,
) -> bool:
    """Write events behind the last one, in the caller's transaction or one of their own, and wake
    listeners after the commit; tell whether it was done.

    The seq comes from the task's row lock, so it has no gaps and is the order of commits.

    Args:
        values: columns of the task to set with them.
        guard: columns and the values they must have; without them nothing is written.
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
