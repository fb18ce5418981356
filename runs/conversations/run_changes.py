"""Update a task when one of its runs changes: its log, messages and status, in the transaction that
changes the run (receiver of `run_of_task_changed`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from decisions.foundation.infra.ids import new_id
from decisions.foundation.security.url_credentials import mask_url_credentials
from decisions.foundation.validation.storable import storable_text
from runners.actions.catalogue import ACTIONS
from runners.tools.registry import get_tool
from runs.conversations.log import append_events
from runs.conversations.message_queue import lock_task, start_next_run
from runs.conversations.state import idle_status, move_task
from runs.events.types import MESSAGE, EventType
from runs.lifecycle.changes import NewEvent, Transition
from runs.models import MessageRole, RunStatus, Task, TaskMessage, TaskStatus
from runs.submission.answer import MESSAGE_MAX

_STARTS = frozenset({EventType.RUN_STARTED, EventType.RUN_RESUMED})
_WITH_RESULT = (RunStatus.SUCCEEDED, RunStatus.PARTIAL_SUCCESS, RunStatus.FAILED)
# Fields of a result that may have the text of the answer; the first one present is used.
_ANSWER_FIELDS = ("message", "answer", "text")


def apply_run_change(change: Transition, **_signal: Any) -> None:
    """Copy the run's events to its task's log; when the run starts, is suspended or ends, also
    write its message and set the task's status.
    """
    run_id, task_id = change.run.id, str(change.run.task_id)
    events = [NewEvent(event.type, {**event.data, "runId": run_id}) for event in change.events]
    values = _used_browser(change)
    is_suspended = change.values.get("waiting_for") is not None
    if not (is_suspended or change.ended or _starts(change)):
        if events:
            append_events(task_id, events, values)
        return
    task = lock_task(task_id)
    if task is None:
        return
    task.used_browser = values.get("used_browser", task.used_browser)
    message = _write_message(task, change)
    if message is not None:
        events.append(message)
        values["messages_count"] = task.messages_count
    to = _status_after(task, change)
    data = {"runId": run_id}
    move_task(task, to, actor=f"run:{run_id}", events=events, values=values, data=data)


def _starts(change: Transition) -> bool:
    return any(event.type in _STARTS for event in change.events)


def _used_browser(change: Transition) -> dict[str, Any]:
    """Return {used_browser}: true once the run has used a browser, false when a run starts."""
    if any(map(_uses_browser, change.events)):
        return {"used_browser": True}
    is_new = any(event.type == EventType.RUN_STARTED for event in change.events)
    return {"used_browser": False} if is_new else {}


def _status_after(task: Task, change: Transition) -> TaskStatus:
    if task.status == TaskStatus.TAKEOVER:
        return TaskStatus.TAKEOVER  # only the person or the time limit ends a takeover
    if _starts(change):
        return TaskStatus.RUNNING
    if not change.ended:
        return TaskStatus.ONGOING  # suspended for a person
    if start_next_run(task):
        return TaskStatus.RUNNING
    return TaskStatus.ERROR if _failed(change) else idle_status(task)


def _failed(change: Transition) -> bool:
    """Return whether the task's work failed: not where the run has a result, as that of a failed
    browser action has; the host goes on from the page.
    """
    values = change.values
    return values.get("status") == RunStatus.FAILED and values.get("result") is None


def _uses_browser(event: NewEvent) -> bool:
    """Return whether an event is a call of a tool that uses a browser."""
    if event.type != EventType.TOOL_USED or event.data.get("refused"):
        return False
    name = str(event.data.get("tool"))
    if name in ACTIONS:
        return True
    tool = get_tool(name)
    return tool is not None and tool.uses_browser


def _write_message(task: Task, change: Transition) -> NewEvent | None:
    """Write the agent's answer or question as a message of the task, and return its event; None if
    the change has neither.
    """
    content = _content_of(change)
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


def _content_of(change: Transition) -> str:
    waiting_for = change.values.get("waiting_for") or {}
    if waiting_for.get("type") == "answer":
        return storable_text(str(waiting_for["question"]))
    if change.values.get("status") not in _WITH_RESULT or _failed(change):
        return ""
    result, summary = change.values.get("result"), str(change.values.get("result_summary") or "")
    fields = [result.get(name) for name in _ANSWER_FIELDS] if isinstance(result, Mapping) else []
    content = next((text for text in fields if isinstance(text, str) and text), summary)
    return storable_text(content)[:MESSAGE_MAX]


def message_event(message: TaskMessage) -> NewEvent:
    """Return the event of a new message."""
    content = mask_url_credentials(message.content)
    data = {"messageId": message.id, "role": str(message.role), "content": content}
    return NewEvent(MESSAGE, data | ({"runId": message.run_id} if message.run_id else {}))
