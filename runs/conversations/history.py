"""What was said in a task before a run: the agent reads it here, its inputs only name the task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs.models import TaskMessage


@dataclass(frozen=True, slots=True)
class Told:
    """One message; role is user, assistant or tool."""

    role: str
    content: str


def messages_before(*, task_id: str, run_id: str, limit: int = 100) -> Sequence[Told]:
    """Return the last messages of a task before that of this run, in order. A message that waits
    behind it is not among them.
    """
    said = TaskMessage.objects.filter(task_id=task_id)
    own = said.filter(run_id=run_id).order_by("number").values_list("number", flat=True).first()
    if own is None:
        return ()
    newest = said.filter(number__lt=own).order_by("-number")[:limit]
    return [Told(message.role, message.content) for message in reversed(newest)]
