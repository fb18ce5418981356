"""The context of a task's page: messages, tools used and the newest screenshot."""

from __future__ import annotations

from typing import Any

import orjson
from django.urls import reverse

from artifacts.models import Artifact
from runs.admin.runs.conversation import brief
from runs.admin.tasks.turn import (
    TURNS,
    UNFINISHED,
    turn_of,
    turn_of_runs,
    turn_pill,
    turns_for_script,
)
from runs.conversations.message_queue import unfinished_runs
from runs.conversations.selectors import takeover_principal
from runs.events.types import MESSAGE, EventType
from runs.models import MessageRole, Run, RunStatus, Task, TaskEvent, TaskMessage, Worker

MESSAGES_SHOWN, TOOLS_SHOWN = 200, 30


def task_context(task: Task) -> dict[str, Any]:
    """Return the template context of the page of a task from `with_turns`.

    It has the messages up to the first whose run has not ended. The page's script adds the rest
    from the events after the sequence number `after`.
    """
    first = _first_unanswered(task)
    messages = task.messages.order_by("-number")
    if first is not None:
        messages = messages.filter(number__lte=first.number)
    shown = list(reversed(messages[:MESSAGES_SHOWN]))
    failures, outputs = _failures(shown), _outputs(task, shown)
    return {
        "task": task,
        "pill": turn_pill(turn_of(task)),
        "turn": turn_of_runs(task),
        "turn_label": TURNS[turn_of(task)][0],
        "turns": turns_for_script(),
        "is_unfinished": turn_of_runs(task) in UNFINISHED,
        "messages_shown": [
            {
                "message": message,
                "failure": failures.get(message.id),
                "output": outputs.get(message.id),
            }
            for message in shown
        ],
        "has_no_worker": not Worker.objects.filter(lost_at__isnull=True).exists(),
        "tools": _tools(task),
        "screenshot": _screenshot(task),
        "image_url": reverse("admin:artifacts_artifact_inline", args=["ARTIFACT"]),
        "decision_url": reverse("admin:decisions_decision_change", args=["DECISION"]),
        "takeover_by": takeover_principal(task) or "",
        "after": task.last_seq if first is None else _seq_of(first),
    }


def _first_unanswered(task: Task) -> TaskMessage | None:
    unfinished = list(unfinished_runs(task.id).values_list("id", flat=True))
    of_runs = task.messages.filter(role=MessageRole.USER, run_id__in=unfinished)
    return of_runs.order_by("number").first()


def _seq_of(message: TaskMessage) -> int:
    events = TaskEvent.objects.filter(task_id=message.task_id, type=MESSAGE)
    return events.filter(data__messageId=message.id).values_list("seq", flat=True)[0]


def _failures(shown: list[TaskMessage]) -> dict[str, dict[str, Any]]:
    """Return the errors of runs without a reply, by the id of the run's last message."""
    last = _last_of_runs(shown)
    stopped = [RunStatus.FAILED, RunStatus.CANCELED]
    ends = Run.objects.filter(id__in=last, status__in=stopped, result__isnull=True)
    names = {"code": "errorCode", "message": "message", "recovery": "recovery"}
    return {
        last[run_id]: {shown: error.get(name) for shown, name in names.items()}
        for run_id, error in ends.values_list("id", "error")
        if error
    }


def _outputs(task: Task, shown: list[TaskMessage]) -> dict[str, str]:
    """Return the structured outputs of runs (or errors) as JSON, by the run's last message."""
    last = _last_of_runs(shown)
    events = TaskEvent.objects.filter(
        task_id=task.id, type=EventType.STRUCTURED_OUTPUT, data__runId__in=list(last)
    ).order_by("seq")
    return {
        last[one.data["runId"]]: orjson.dumps(
            one.data.get("output", one.data.get("error")), option=orjson.OPT_INDENT_2
        ).decode()
        for one in events
    }


def _last_of_runs(shown: list[TaskMessage]) -> dict[str, str]:
    return {one.run_id: one.id for one in shown if one.run_id is not None}


def _tools(task: Task) -> list[dict[str, Any]]:
    """Return the tool calls that have ended, newest last, with their arguments."""
    used = TaskEvent.objects.filter(task_id=task.id, type=EventType.TOOL_USED).order_by("-seq")
    names = {"tool": "tool", "ok": "ok", "code": "errorCode", "id": "toolCallId", "run": "runId"}
    started: dict[tuple[Any, Any], Any] = {}
    ended = []
    for data in reversed([one.data for one in used[: 2 * TOOLS_SHOWN]]):
        call = data.get("runId"), data.get("toolCallId")
        if data.get("phase") == "start":
            started[call] = data.get("args")
        elif data.get("phase") == "end":
            shown = {name: data.get(key) for name, key in names.items()}
            # A refused call has no start: its end has the arguments.
            ended.append(shown | {"args": brief(started.pop(call, data.get("args")))})
    return ended[-TOOLS_SHOWN:]


def _screenshot(task: Task) -> Artifact | None:
    runs = Run.objects.filter(task_id=task.id).order_by("-created_at").values_list("id", flat=True)
    screenshots = Artifact.objects.filter(
        run_id__in=list(runs[:5]), kind="screenshot", expired_at=None
    )
    return screenshots.order_by("-created_at", "-id").first()
