"""Who is to move in a task: the agent, or a person. The list and the page show it as the status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.fields.json import KT
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from decisions.foundation.presentation.html import pill
from runs.models import Run, RunStatus, Task, TaskStatus

# The label and the colour of each turn. A template of the page gives them to its script.
TURNS: Mapping[str, tuple[str | Promise, str]] = {
    "new": (gettext_lazy("no message yet"), "neutral"),
    "queued": (gettext_lazy("waits for a worker"), "queued"),
    "works": (gettext_lazy("agent works"), "running"),
    "answer": (gettext_lazy("your turn: answer"), "waiting"),
    "decision": (gettext_lazy("your turn: decide"), "waiting"),
    "takeover": (gettext_lazy("a person has the page"), "waiting"),
    "answered": (gettext_lazy("answered"), "succeeded"),
    "failed": (gettext_lazy("failed"), "failed"),
    "stopped": (gettext_lazy("stopped"), "canceled"),
}
UNFINISHED = frozenset({"queued", "works", "answer", "decision"})
_OF_WAITS = {"answer": "answer", "confirmation": "decision"}


def with_turns(tasks: QuerySet[Task]) -> QuerySet[Task]:
    """Return tasks with what `turn_of` reads of their current and last runs."""
    runs = Run.objects.filter(task_id=OuterRef("id"))
    # A running run comes before the queued ones behind it.
    current = runs.filter(ended_at__isnull=True).order_by("-status", "created_at", "id")
    last = runs.filter(ended_at__isnull=False).order_by("-created_at", "-id")
    waiting = current.annotate(wait=KT("waiting_for__type"))
    return tasks.annotate(
        current_status=Subquery(current.values("status")[:1]),
        current_is_ready=Subquery(current.values("ready")[:1]),
        current_wait=Subquery(waiting.values("wait")[:1]),
        last_status=Subquery(last.values("status")[:1]),
    )


def turn_of(task: Any) -> str:
    """Return the key in TURNS of a task from `with_turns`."""
    if task.status == TaskStatus.TAKEOVER:
        return "takeover"
    return turn_of_runs(task)


def turn_of_runs(task: Any) -> str:
    """Return the turn that the task's runs give, also while a person has the page."""
    if task.current_status == RunStatus.QUEUED:
        return "queued"
    if task.current_status is not None:
        is_suspended = not task.current_is_ready
        return _OF_WAITS.get(task.current_wait, "works") if is_suspended else "works"
    if task.last_status is None or not task.messages_count:
        return "new"
    if task.status == TaskStatus.ERROR:
        return "failed"
    return "stopped" if task.last_status == RunStatus.CANCELED else "answered"


def turn_pill(turn: str) -> SafeString:
    """Return a turn as a coloured label."""
    label, tone = TURNS[turn]
    return pill(str(label), tone)


def turns_for_script() -> dict[str, dict[str, str]]:
    """Return the labels and colours for the page's script."""
    return {turn: {"label": str(label), "tone": tone} for turn, (label, tone) in TURNS.items()}
