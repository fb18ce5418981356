"""What an agent run reads of its task: the messages before its own, and takeovers of the page."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Q

from runs.models import MessageRole, Run, Task, TaskMessage, TaskStatus
from runs.steps import HistoryMessage

MAX_MESSAGES = 100  # of the task before the run's own that an agent reads


def messages_before(*, task_id: str, run_id: str) -> Sequence[HistoryMessage]:
    """Return the newest MAX_MESSAGES messages of a task before this run's own message, in order.

    An answer follows the message that it answers, even if the user sent the next message before the
    answer was written. Messages queued behind the run are left out.
    """
    messages = TaskMessage.objects.filter(task_id=task_id)
    own = messages.filter(run_id=run_id).order_by("number").values_list("number", flat=True).first()
    if own is None:
        return ()
    before = messages.filter(~Q(role=MessageRole.USER) | Q(number__lt=own)).exclude(run_id=run_id)
    newest = list(before.order_by("-number")[:MAX_MESSAGES])
    first_number: dict[str | None, int] = {}
    for message in newest:  # newest first, so the number of each run's first message remains
        first_number[message.run_id] = message.number
    newest.sort(key=lambda message: (first_number[message.run_id], message.number))
    return [HistoryMessage(message.role, message.content) for message in newest]


def user_texts(task_id: str) -> list[str]:
    """Return what the user wrote in a task."""
    messages = TaskMessage.objects.filter(task_id=task_id, role=MessageRole.USER)
    return list(messages.order_by("-number").values_list("content", flat=True)[:MAX_MESSAGES])


def count_ended_takeovers(run: Run) -> int:
    """Return how many takeovers of the page of the run's task have ended."""
    if run.task_id is None:
        return 0
    counts = Task.objects.filter(id=run.task_id).values_list("times_given_back", flat=True)
    return counts.first() or 0


def count_takeovers(run: Run) -> int:
    """Return how often a person took over the page of the run's task, including right now."""
    if run.task_id is None:
        return 0
    known = Task.objects.filter(id=run.task_id).values_list("times_given_back", "status").first()
    return known[0] + (known[1] == TaskStatus.TAKEOVER) if known is not None else 0
