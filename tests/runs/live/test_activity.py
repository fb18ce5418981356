"""A person's activity on a page is published and audited, even after the run has ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.conversations.services import stop_task, take_over_task
from runs.live.activity import PersonActivity, record_activity
from runs.models import TaskEvent


def test_activity_is_recorded_even_after_the_run_ended(
    principal: Principal, make_task: Callable[..., str]
) -> None:
    task_id = make_task("say hi")
    take_over_task(principal=principal, task_id=task_id)
    record_activity(task_id, "me", PersonActivity(Counter(clicks=1)))
    event = TaskEvent.objects.filter(task_id=task_id).latest("seq")
    assert (event.type, event.data) == ("personActed", {"by": "me", "clicks": 1})
    stop_task(principal=principal, task_id=task_id)
    record_activity(task_id, "me", PersonActivity(Counter(keys=2)))
    event = TaskEvent.objects.filter(task_id=task_id).latest("seq")
    assert (event.type, event.data) == ("personActed", {"by": "me", "keys": 2})
    used = AuditEntry.objects.filter(action="task.page_used", resource_id=task_id)
    assert [one.metadata for one in used.order_by("id")] == [
        {"by": "me", "clicks": 1},
        {"by": "me", "keys": 2},
    ]
