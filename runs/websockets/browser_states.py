"""Follow the state of a paired browser: its windows, tabs and groups, as they change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from decisions.foundation.infra.redis import messages_of, redis_errors, subscription
from decisions.foundation.infra.threads import in_thread
from decisions.foundation.security.sealed_messages import Inbox
from decisions.identity.principals import Principal
from runners.models import PluginClient
from runners.paired_browser.connections.snapshots import read_snapshot
from runners.paired_browser.messaging.channel import snapshot_channel
from runs.live.paired_browser import browser_of_task

RETRY_S = 5.0  # pause after Redis was unavailable
SendState = Callable[[Mapping[str, Any]], Awaitable[None]]


async def follow_browser(caller: Principal, task_id: str, send: SendState) -> None:
    """Send {clientId, seq, state} of the caller's paired browser, if the task acts in it, now and
    at each change. It never ends. Nothing is sent while Redis is unavailable.
    """
    browser = await in_thread(browser_of_task, caller, task_id)
    if browser is None:
        await asyncio.Event().wait()
        return
    while True:
        try:
            await _follow(browser, send)
        except redis_errors():
            await asyncio.sleep(RETRY_S)


async def _follow(browser: PluginClient, send: SendState) -> None:
    """Send the state that is known, and then each change.

    Raises:
        redis_errors(): Redis is unavailable.
    """
    name = snapshot_channel(browser.id)
    inbox = Inbox(name)
    async with subscription(name) as channel:
        async for message in messages_of(channel):
            is_first = message["type"] == "subscribe"
            state: Mapping[str, Any] | None = (
                await in_thread(read_snapshot, browser) if is_first else inbox.open(message["data"])
            )
            if state is not None and state["state"] is not None:
                await send({"clientId": browser.id, "seq": state["seq"], "state": state["state"]})
