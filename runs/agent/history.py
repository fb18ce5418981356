"""What was said in a task before a run: the agent reads it here, its inputs only name the task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from runs.models import MessageRole, Run, Task, TaskMessage, TaskStatus


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """One message; role is user, assistant or tool."""

    role: str
    content: str


def messages_before(*, task_id: str, run_id: str, limit: int = 100) -> Sequence[HistoryMessage]:
    """Return what was said in a task before the message of this run: each answer behind what it
    answers, also where the next message came before it. What waits behind the run is not among
    them.
    """
    said = TaskMessage.objects.filter(task_id=task_id)
    own = said.filter(run_id=run_id).order_by("number").values_list("number", flat=True).first()
    if own is None:
        return ()
    before = said.filter(~Q(role=MessageRole.USER) | Q(number__lt=own)).exclude(run_id=run_id)
    newest = list(before.order_by("-number")[:limit])
    began: dict[str | None, int] = {}
    for message in newest:  # newest first: what is left is where each run began
        began[message.run_id] = message.number
    newest.sort(key=lambda message: (began[message.run_id], message.number))
    return [HistoryMessage(message.role, message.content) for message in newest]


def times_given_back(run: Run) -> int:
    """Return how often a person gave back the page of a run's task: any other, maybe."""
    if run.task_id is None:
        return 0
    counts = Task.objects.filter(id=run.task_id).values_list("times_given_back", flat=True)
    return counts.first() or 0


def times_taken_over(run: Run) -> int:
    """Return how often a person took the page of a run's task over: those who gave it back, and
    whoever has it now.
    """
    if run.task_id is None:
        return 0
    known = Task.objects.filter(id=run.task_id).values_list("times_given_back", "status").first()
    return known[0] + (known[1] == TaskStatus.TAKEOVER) if known is not None else 0
