"""Serve 500 paired browsers that send 1000 messages a second in all, and perform actions in one of
them: from a message to its ack, and from `perform_in_browser` to its reply.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from tests.benchmarks.event_stream import ROOT, environment, start_server
from tests.benchmarks.rounds import percentiles, report
from tests.services import DurablePostgresServer, free_port, redis_server, served

BROWSERS, MESSAGES_PER_S, SECONDS = 500, 1000, 20
ACTIONS, PER_PRINCIPAL = 300, 50
TABS = 20  # of each browser


class LoadedBrowser:
    """A browser that sends tab events and pings at a fixed rate, and answers actions at once."""

    def __init__(self, url: str, ticket: str) -> None:
        self._url, self._ticket = url, ticket
        self._sent_at: dict[str, float] = {}
        self._seqs = itertools.count(1)
        self.acks: list[float] = []
        self.session: dict[str, Any] = {}

    async def connect(self) -> None:
        """Pair and send the complete state."""
        from websockets.asyncio.client import connect
        from websockets.typing import Origin

        from tests.support.runners.protocol_browser import ABOUT, ORIGIN, tab

        address = self._url.replace("http", "ws", 1) + "/ws/plugin"
        self._socket = await connect(address, origin=Origin(ORIGIN), open_timeout=60)
        first = {"type": "activate_extension", "id": "a", "ticket": self._ticket, **ABOUT}
        await self._socket.send(json.dumps({"v": 1, **first}))
        self.session = json.loads(await self._socket.recv())["result"]
        self._reader = asyncio.create_task(self._read())
        tabs = [tab(number, index=number) for number in range(TABS)]
        state = {"windows": [], "groups": [], "tabs": tabs}
        await self.send("full_state_sync", seq=next(self._seqs), state=state)

    async def send(self, type_: str, **fields: Any) -> None:
        """Send a message that is acknowledged."""
        message_id = f"{type_}{len(self._sent_at)}"
        self._sent_at[message_id] = time.perf_counter()
        await self._socket.send(json.dumps({"v": 1, "type": type_, "id": message_id, **fields}))

    async def load(self, until: float) -> None:
        """Send messages at this browser's part of the rate."""
        from tests.support.runners.protocol_browser import tab

        pause_s = BROWSERS / MESSAGES_PER_S
        due = time.perf_counter() + pause_s * (hash(self._ticket) % 1000) / 1000
        for number in itertools.count():
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            if due > until:
                return
            due += pause_s
            shown = tab(number % TABS, index=number % TABS, title=f"Title {number}")
            event = {"kind": "updated", "tab": shown}
            await self.send("tab_event", seq=next(self._seqs), event=event)

    @property
    def lost(self) -> int:
        """How many messages were not acknowledged."""
        return len(self._sent_at) - len(self.acks)

    async def _read(self) -> None:
        async for text in self._socket:
            message = json.loads(text)
            if message["type"] == "ack":
                self.acks.append(time.perf_counter() - self._sent_at[message["id"]])
            elif message["type"] == "browser_action":
                await self._act(message)
            elif message["type"] == "ping":
                await self._socket.send(json.dumps({"v": 1, "type": "pong", "id": message["id"]}))

    async def _act(self, action: dict[str, Any]) -> None:
        await self._socket.send(json.dumps({"v": 1, "type": "ack", "id": action["id"], "ok": True}))
        ids = {name: action[name] for name in ("actionId", "taskId")}
        await self.send("browser_action_result", **ids, status="success", result={"clicked": True})


async def call(browser: LoadedBrowser) -> list[float]:
    """Perform actions one after another; return the seconds of each."""
    from decisions.foundation.infra.ids import new_id
    from runners.paired_browser.dispatch import SentAction, perform_in_browser

    seconds = []
    for _ in range(ACTIONS):
        action = SentAction(
            action_id=new_id("act_"),
            task_id="task_1",
            client_id=browser.session["clientId"],
            name="browser_click",
            params={"tabId": 1, "clickId": 1},
            timeout_ms=5000,
        )
        started_at = time.perf_counter()
        await perform_in_browser(action)
        seconds.append(time.perf_counter() - started_at)
        await asyncio.sleep(0.02)
    return seconds


async def measure(url: str, tickets: list[str]) -> dict[str, Any]:
    """Connect all browsers, measure the actions of one, then the load, then both at once."""
    browsers = [LoadedBrowser(url, ticket) for ticket in tickets]
    for start in range(0, BROWSERS, 20):
        await asyncio.gather(*(one.connect() for one in browsers[start : start + 20]))
    await asyncio.sleep(2)
    quiet = await call(browsers[0])
    for browser in browsers:
        browser.acks.clear()
        browser._sent_at.clear()
    until = time.perf_counter() + SECONDS
    started_at = time.perf_counter()
    loads = [asyncio.create_task(browser.load(until)) for browser in browsers]
    under_load = await call(browsers[0])
    await asyncio.gather(*loads)
    seconds = time.perf_counter() - started_at
    await asyncio.sleep(2)
    acks = [ms * 1000 for browser in browsers for ms in browser.acks]
    return {
        "browsers": BROWSERS,
        "messages_per_s": round(len(acks) / seconds),
        "ack_ms": percentiles(acks),
        "lost": sum(browser.lost for browser in browsers),
        "round_trip_ms": percentiles([one * 1000 for one in quiet]),
        "round_trip_under_load_ms": percentiles([one * 1000 for one in under_load]),
    }


def make_tickets() -> list[str]:
    """Return a ticket for each browser."""
    from decisions.identity.principals import authenticate, create_token
    from runners.paired_browser.pairing.tickets import create_ticket

    owners = [
        authenticate(create_token(name=f"t{number}")) for number in range(BROWSERS // PER_PRINCIPAL)
    ]
    return [
        create_ticket(principal=owner)["ticket"] for owner in owners for _ in range(PER_PRINCIPAL)
    ]


def main() -> None:
    """Measure and report."""
    with (
        tempfile.TemporaryDirectory() as home,
        served(DurablePostgresServer, DurablePostgresServer.make) as postgres,
        redis_server() as redis,
    ):
        env = environment(postgres.url, redis.url, home)
        os.environ.update(env, DJANGO_SETTINGS_MODULE="config.settings")
        migrate = [sys.executable, "manage.py", "migrate", "-v0", "--skip-checks"]
        subprocess.run(migrate, env=env, cwd=ROOT, check=True)
        import django  # import late: the environment has to be set first

        django.setup()
        port = free_port()
        with start_server("manage.py", "serve", "--port", str(port), env=env):
            measured = asyncio.run(measure(f"http://127.0.0.1:{port}", make_tickets()))
    goals = {"ack_ms.p95": "<= 250", "lost": 0, "round_trip_ms.p50": "<= 15"}
    report("extension_sockets", **measured, goals=goals)


if __name__ == "__main__":
    main()
