"""A task follows its runs: what they tell goes to its log, and where they are decides where it is,
in the transaction that changes the run (receiver of `run_of_task_changed`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from decisions.infra.ids import new_id
from decisions.validation.storable import storable_text
from runners.actions.catalogue import ACTIONS
from runners.tools.registry import get_tool
from runs.conversations.log import append_events
from runs.conversations.message_queue import lock_task, start_next_run
from runs.conversations.state import idle_status, move_task
from runs.events.types import MESSAGE, EventType
from runs.lifecycle.changes import NewEvent, Transition
from runs.models import MessageRole, RunStatus, Task, TaskMessage, TaskStatus

_BEGINS = frozenset({EventType.RUN_STARTED, EventType.RUN_RESUMED})
CONTENT_MAX = 65_536  # characters of a message
# Where a result has the words of the agent's answer, the first that is there.
_ANSWER_IN = ("message", "answer", "text")


def apply_run_change(change: Transition, **_signal: Any) -> None:
    """Write what a change of a run means for its task."""
    run_id, task_id = change.run.id, str(change.run.task_id)
    told = [NewEvent(one.type, {**one.data, "runId": run_id}) for one in change.events]
    values = _used_browser(change)
    waits = change.values.get("waiting_for") is not None
    if not (waits or change.ended or _begins(change)):
        if told:
            append_events(task_id, told, values)
        return
    task = lock_task(task_id)
    if task is None:
        return
    task.used_browser = values.get("used_browser", task.used_browser)
    said = _message(task, change)
    if said is not None:
        told.append(said)
        values["messages_count"] = task.messages_count
    to = _status_after(task, change)
    data = {"runId": run_id}
    move_task(task, to, actor=f"run:{run_id}", events=told, values=values, data=data)


def _begins(change: Transition) -> bool:
    return any(one.type in _BEGINS for one in change.events)


def _used_browser(change: Transition) -> dict[str, Any]:
    """Return the column that says so, where the change tells anything of it: each run begins
    without.
    """
    if any(map(_uses_browser, change.events)):
        return {"used_browser": True}
    starts = any(one.type == EventType.RUN_STARTED for one in change.events)
    return {"used_browser": False} if starts else {}


def _status_after(task: Task, change: Transition) -> TaskStatus:
    if task.status == TaskStatus.TAKEOVER:
        return TaskStatus.TAKEOVER  # that ends when the person says so
    if _begins(change):
        return TaskStatus.RUNNING
    if not change.ended:
        return TaskStatus.ONGOING  # it waits for a person
    if start_next_run(task):
        return TaskStatus.RUNNING
    failed = change.values.get("status") == RunStatus.FAILED
    return TaskStatus.ERROR if failed else idle_status(task)


def _uses_browser(event: NewEvent) -> bool:
    """Tell whether an event says that a browser was used."""
    if event.type != EventType.TOOL_USED:
        return False
    name = str(event.data.get("tool"))
    if name in ACTIONS:
        return True
    tool = get_tool(name)
    return tool is not None and tool.uses_browser


def _message(task: Task, change: Transition) -> NewEvent | None:
    """Write what the agent answered or asked as a message of the task; return its event."""
    content = _words_of(change)
    if not content:
        return None
    task.messages_count += 1
    message = TaskMessage.objects.create(
        id=new_id("tmsg_"),
        task_id=task.id,
        number=task.messages_count,
        role=MessageRole.ASSISTANT,
        content=content,
        run_id=change.run.id,
        at=datetime.now(UTC),
    )
    return message_event(message)


def _words_of(change: Transition) -> str:
    waiting_for = change.values.get("waiting_for") or {}
    if waiting_for.get("type") == "answer":
        return storable_text(str(waiting_for["question"]))
    if change.values.get("status") not in (RunStatus.SUCCEEDED, RunStatus.PARTIAL_SUCCESS):
        return ""
    result, summary = change.values.get("result"), str(change.values.get("result_summary") or "")
    named = [result.get(name) for name in _ANSWER_IN] if isinstance(result, Mapping) else []
    words = next((text for text in named if isinstance(text, str) and text), summary)
    return storable_text(words)[:CONTENT_MAX]


def message_event(message: TaskMessage) -> NewEvent:
    """Return the event that tells of a message."""
    said = {"messageId": message.id, "role": str(message.role), "content": message.content}
    return NewEvent(MESSAGE, said | ({"runId": message.run_id} if message.run_id else {}))
