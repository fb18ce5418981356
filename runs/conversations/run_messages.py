"""The task of a run that a caller submits without one: that of the browser session in which an
agent goes on, or a new one for a run in a paired browser: there the person sees it, takes it
over and stops it by its task.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decisions.identity.principals import Principal
from runners.paired_browser.choice import SELECTED, is_paired_browser
from runs.conversations.messages import TEMPLATE as AGENT
from runs.conversations.messages import UserMessage, new_task, title_of
from runs.models import Task

BATCH = "batch_extract_pages"


def message_of_run(
    *, principal: Principal, session_id: str | None, template_id: str, inputs: Mapping[str, Any]
) -> tuple[UserMessage | None, Mapping[str, Any]]:
    """Return the message with which a run belongs to a task, and the run's inputs; no message where
    it needs no task.
    """
    task = None
    if template_id == AGENT and session_id is not None:
        task = task_of_session(principal, session_id)
    if task is not None:
        message = UserMessage(
            principal, task.id, _goal_of(inputs), on_busy="refuse", session_id=session_id
        )
        selected = task.selected_client_id
        return message, inputs if selected is None else {**inputs, SELECTED: selected}
    if template_id in (AGENT, BATCH) and _names_paired_browser(inputs):
        content = _goal_of(inputs) if template_id == AGENT else _pages_of(inputs)
        new = new_task(principal, title_of(content))
        return UserMessage(principal, new.id, content, new_task=new), inputs
    return None, inputs


def task_of_session(principal: Principal, session_id: str) -> Task | None:
    """Return the task that belongs to a browser session, or None."""
    tasks = Task.objects.filter(workspace_id=principal.workspace_id, session_id=session_id)
    return tasks.first()


def _names_paired_browser(inputs: Mapping[str, Any]) -> bool:
    target = inputs.get("targetId")
    return SELECTED in inputs or (isinstance(target, str) and is_paired_browser(target))


def _goal_of(inputs: Mapping[str, Any]) -> str:
    return str(inputs.get("goal", ""))


def _pages_of(inputs: Mapping[str, Any]) -> str:
    urls = inputs.get("urls")
    listed = [str(url)[:500] for url in urls] if isinstance(urls, list) else []
    more = f" and {len(listed) - 1} more" if len(listed) > 1 else ""
    return f"Read {listed[0] if listed else 'pages'}{more}"
