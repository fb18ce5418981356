"""Close tabs in a paired browser that a task must not leave there: one that shows a page that
the caller may not read, and those of a run that ended early.

No policy is asked: a task closes its own tabs, no others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from decisions.foundation.infra.ids import new_id
from runners.actions.catalogue import CLOSE_TAB, TASK_STOP, Action
from runners.errors import ToolFailed
from runners.paired_browser.choice import PairedBrowser
from runners.paired_browser.dispatch import SentAction, perform_in_browser

BUSY_S = 25.0  # an action that still runs in the browser may take so long
POLL_S = 0.5


async def close_private_tab(browser: PairedBrowser, tab_id: object, *, seconds: float) -> bool:
    """Close the tab in which an action opened a page that its caller may not read: this one if it
    is known and not the task's only one, else all of the task. Return whether that was done.
    """
    try:
        async with asyncio.timeout(max(0.5, seconds)):
            if isinstance(tab_id, int) and await _was_performed(
                browser, CLOSE_TAB, {"tabId": tab_id}
            ):
                return True
            return await _was_performed(browser, TASK_STOP, {"closeTab": True})
    except (TimeoutError, ToolFailed):
        return False


async def close_tabs_of_task(browser: PairedBrowser) -> bool:
    """Close all tabs of a task; an action that still runs in them is waited for, for BUSY_S. Return
    whether that was done.
    """
    until = time.monotonic() + BUSY_S
    while True:
        try:
            if await _was_performed(browser, TASK_STOP, {"closeTab": True}):
                return True
        except ToolFailed:
            return False
        if time.monotonic() >= until:
            return False
        await asyncio.sleep(POLL_S)


async def _was_performed(browser: PairedBrowser, action: Action, params: Mapping[str, Any]) -> bool:
    place = replace(browser, action_id=new_id("act_"))
    sent = SentAction(
        place.action_id, place.task_id, place.client_id, action.name, params, action.timeout_ms
    )
    return (await perform_in_browser(sent)).status == "success"
