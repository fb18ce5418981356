"""Read pages of a task's log, for streaming and long polling."""

from __future__ import annotations

from typing import Any

from decisions.identity.principals import Principal
from runs.conversations.selectors import list_task_events
from runs.streaming.long_poll import wait_events
from runs.streaming.sse import Page


def read_task_page(principal: Principal, task_id: str, after: int, limit: int) -> Page:
    """Return a page of a task's log, and the seq where the log ends."""
    return list_task_events(principal=principal, run_id=task_id, after=after, limit=limit)


async def wait_task_events(
    *, principal: Principal, task_id: str, after: int, limit: int, wait_s: float = 0.0
) -> dict[str, Any]:
    """Return the events after `after` as soon as there is one; none after `wait_s`.

    Raises:
        TaskNotFound: As `selectors.visible_task`.
    """
    page = await wait_events(
        principal=principal,
        run_id=task_id,
        after=after,
        wait_s=wait_s,
        limit=limit,
        read=list_task_events,
    )
    return {**page, "terminal": False}
