"""What a task's page tells: what was said, what is under way, the tools and the newest picture."""

from __future__ import annotations

from typing import Any

import orjson
from django.urls import reverse
from django.utils.safestring import SafeString

from artifacts.models import Artifact
from decisions.presentation.html import pill
from runs.conversations.message_queue import unfinished_runs
from runs.conversations.selectors import takeover_principal, task_object
from runs.events.types import MESSAGE, EventType
from runs.models import MessageRole, Run, RunStatus, Task, TaskEvent, TaskMessage, Worker

MESSAGES_SHOWN, TOOLS_SHOWN = 200, 30
# The colour of each status: how it feels to who waits for it.
TONES = {
    "created": "neutral",
    "running": "running",
    "ongoing": "waiting",
    "takeover": "waiting",
    "completed": "succeeded",
    "error": "failed",
}


def task_pill(status: str) -> SafeString:
    """Return a task's status as a coloured label."""
    return pill(status, TONES[status])


def tell(task: Task) -> dict[str, Any]:
    """Return what the page shows, up to the message whose run is under way; from there on the
    page's script puts together what the log tells, from `after`.
    """
    first = _first_unanswered(task)
    said = task.messages.order_by("-number")
    if first is not None:
        said = said.filter(number__lte=first.number)
    shown = list(reversed(said[:MESSAGES_SHOWN]))
    failures, outputs = _failures(shown), _outputs(task, shown)
    return {
        "task": task,
        "goes_on": task_object(task, messages=0),
        "pill": task_pill(task.status),
        "tones": TONES,
        "talk": [
            {"said": one, "failed": failures.get(one.id), "output": outputs.get(one.id)}
            for one in shown
        ],
        "nobody_works": not Worker.objects.filter(lost_at__isnull=True).exists(),
        "tools": _tools(task),
        "picture": _picture(task),
        "picture_place": reverse("admin:artifacts_artifact_inline", args=["ARTIFACT"]),
        "decision_place": reverse("admin:decisions_decision_change", args=["DECISION"]),
        "holder": takeover_principal(task) or "",
        "after": task.last_seq if first is None else _seq_of(first),
    }


def _first_unanswered(task: Task) -> TaskMessage | None:
    under_way = list(unfinished_runs(task.id).values_list("id", flat=True))
    of_runs = task.messages.filter(role=MessageRole.USER, run_id__in=under_way)
    return of_runs.order_by("number").first()


def _seq_of(message: TaskMessage) -> int:
    told = TaskEvent.objects.filter(task_id=message.task_id, type=MESSAGE)
    return told.filter(data__messageId=message.id).values_list("seq", flat=True)[0]


def _failures(shown: list[TaskMessage]) -> dict[str, dict[str, Any]]:
    """Return why there is no answer, by the last message of its run."""
    last = _last_of_runs(shown)
    ends = Run.objects.filter(id__in=last, status__in=[RunStatus.FAILED, RunStatus.CANCELED])
    names = {"code": "errorCode", "message": "message", "recovery": "recovery"}
    return {
        last[run_id]: {shown: error.get(name) for shown, name in names.items()}
        for run_id, error in ends.values_list("id", "error")
        if error
    }


def _outputs(task: Task, shown: list[TaskMessage]) -> dict[str, str]:
    """Return what runs answered in the shape that was asked for, or why it was none, as JSON text,
    by the last message of each run.
    """
    last = _last_of_runs(shown)
    told = TaskEvent.objects.filter(
        task_id=task.id, type=EventType.STRUCTURED_OUTPUT, data__runId__in=list(last)
    ).order_by("seq")
    return {
        last[one.data["runId"]]: orjson.dumps(
            one.data.get("output", one.data.get("error")), option=orjson.OPT_INDENT_2
        ).decode()
        for one in told
    }


def _last_of_runs(shown: list[TaskMessage]) -> dict[str, str]:
    return {one.run_id: one.id for one in shown if one.run_id is not None}


def _tools(task: Task) -> list[dict[str, Any]]:
    """Return the uses of tools that have ended, the newest last."""
    ends = TaskEvent.objects.filter(
        task_id=task.id, type=EventType.TOOL_USED, data__phase="end"
    ).order_by("-seq")
    names = {"tool": "tool", "ok": "ok", "code": "errorCode", "id": "toolCallId", "run": "runId"}
    return [
        {shown: one.data.get(name) for shown, name in names.items()}
        for one in reversed(ends[:TOOLS_SHOWN])
    ]


def _picture(task: Task) -> Artifact | None:
    runs = Run.objects.filter(task_id=task.id).order_by("-created_at").values_list("id", flat=True)
    kept = Artifact.objects.filter(run_id__in=list(runs[:5]), kind="screenshot", expired_at=None)
    return kept.order_by("-created_at", "-id").first()
