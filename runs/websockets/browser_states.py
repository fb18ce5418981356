"""Follow the state of a paired browser: its windows, tabs and groups, as they change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from decisions.foundation.infra.redis import connect, redis_errors
from decisions.foundation.infra.threads import in_thread
from decisions.foundation.security.sealed_messages import Inbox
from decisions.identity.principals import Principal
from runners.models import PluginClient
from runners.paired_browser.connections.snapshots import read_snapshot
from runners.paired_browser.messaging.channel import snapshot_channel
from runs.live.paired_browser import browser_of_task

RETRY_S = 5.0  # pause after Redis was unavailable
POLL_S = 2.0
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
    redis, name = connect(blocking=True), snapshot_channel(browser.id)
    try:
        async with redis.pubsub(ignore_subscribe_messages=True) as channel:
            await channel.subscribe(name)
            inbox = Inbox(name)
            state: dict[str, Any] | None = await in_thread(read_snapshot, browser)
            while True:
                if state is not None and state["state"] is not None:
                    shown = {"clientId": browser.id, "seq": state["seq"], "state": state["state"]}
                    await send(shown)
                received = await channel.get_message(timeout=POLL_S)
                state = None if received is None else inbox.open(received["data"])
    finally:
        await redis.aclose()
