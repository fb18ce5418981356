"""The browsers whose sockets a web process has: one Redis subscription delivers the messages to
them, one loop keeps their rows, another their snapshots.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from django.db import Error

from decisions.foundation.infra.cancellation import cancel_and_wait
from decisions.foundation.infra.clock import now_ms
from decisions.foundation.infra.outages import Outage
from decisions.foundation.infra.redis import connect, messages_of, redis_errors, subscription
from decisions.foundation.infra.threads import in_thread
from decisions.foundation.security.sealed_messages import Inbox
from runners.paired_browser.connections.snapshots import write_snapshots
from runners.paired_browser.messaging.calls import ActionCall, CallStore
from runners.paired_browser.messaging.channel import browser_channel, control_channel
from runners.paired_browser.pairing.registry import Activation, keep_connected
from runners.paired_browser.protocol.browser_state import BrowserState

if TYPE_CHECKING:
    from redis.asyncio.client import PubSub

KEEP_S = 5.0  # interval at which the rows of connected browsers are written and checked
SNAPSHOT_S = 1.0  # shortest interval between two snapshots of one browser
SUBSCRIBE_S = 5.0
CLOSE_S = 1.0
RETRY_S = 1.0
MAX_WAITING = 256  # messages to one browser
MAX_CALLS = 200  # actions of one browser without a result
SEQS = 1_000_000  # numbers of a connection's states: each connection goes on above the one before
NOT_PAIRED, REPLACED, GOING_AWAY, TOO_SLOW = 4410, 4409, 1001, 4408
Message = Mapping[str, Any]
log = logging.getLogger(__name__)


class PairingUnavailable(Exception):
    """Redis is unavailable, so the browser has to connect again later."""


class ExtensionConnection:
    """One connected browser.

    Attributes:
        calls: the actions that were sent over this connection and have no result yet.
        outgoing: messages to the browser, and in the end why the connection is closed.
        state: what it has open; None before its first full state.
        seq: of its last message that changed the state.
        version: of its state, for readers; it only grows.
    """

    def __init__(self, activation: Activation) -> None:
        self.client_id, self.connection_id = activation.client_id, activation.connection_id
        self.principal = activation.principal
        self.calls: dict[str, ActionCall] = {}
        self.outgoing: asyncio.Queue[Message | tuple[int, str]] = asyncio.Queue(MAX_WAITING)
        self.state: BrowserState | None = None
        self.seq = 0
        self.version = activation.generation * SEQS
        self.was_seen = self.has_answered = self.has_new_state = False
        self._inbox = Inbox(browser_channel(self.client_id))

    def receive(self, sealed: bytes) -> None:
        """Handle a message from another process; ignore one that `Inbox.open` refuses."""
        message = self._inbox.open(sealed)
        if message is None:
            return
        kind = message.pop("kind", None)
        if kind == "action":
            self._expect(ActionCall(**message["call"]))
            self.send({"type": "browser_action", **message["action"]})
        elif kind == "task_status":
            self.send({"type": "task_status", **message})
        elif kind == "revoked":
            self.close("revoked")
        elif kind == "replaced" and message["connectionId"] != self.connection_id:
            self.close("replaced")

    def _expect(self, call: ActionCall) -> None:
        while len(self.calls) >= MAX_CALLS:  # the oldest has timed out long ago
            del self.calls[next(iter(self.calls))]
        self.calls[call.action_id] = call

    def send(self, message: Message) -> None:
        """Queue a message to the browser; one that does not read is disconnected."""
        if self.outgoing.full():
            self._end(TOO_SLOW, "the browser does not read")
        else:
            self.outgoing.put_nowait(message)

    def close(self, reason: str) -> None:
        """Close the connection: `revoked`, `replaced` or `shutdown`."""
        closes = {
            "revoked": (NOT_PAIRED, "the browser is not paired any more"),
            "replaced": (REPLACED, "the browser has connected again"),
            "shutdown": (GOING_AWAY, "the server is shutting down; reconnect"),
            "unavailable": (GOING_AWAY, "Redis is unavailable; reconnect later"),
        }
        self._end(*closes[reason])

    def _end(self, code: int, reason: str) -> None:
        while self.outgoing.full():
            self.outgoing.get_nowait()
        self.outgoing.put_nowait((code, reason))


class ExtensionHub:
    """The connected browsers of one event loop. Its tasks run only while there are any."""

    def __init__(self) -> None:
        self._connections: dict[str, ExtensionConnection] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._channel: PubSub | None = None
        self._subscribed: dict[str, asyncio.Event] = {}
        self._reserved: set[str] = set()
        self._is_ready = asyncio.Event()
        self._state_changed = asyncio.Event()
        self._redis = Outage(
            log,
            on_failure="connected browsers get no actions from redis",
            on_recovery="connected browsers get actions from redis again",
        )
        self._database = Outage(
            log,
            on_failure="the rows of connected browsers cannot be written",
            on_recovery="the rows of connected browsers are written again",
        )
        self.redis = connect(blocking=False)
        self.calls = CallStore(self.redis)

    @property
    def count(self) -> int:
        """How many browsers are connected."""
        return len(self._connections)

    async def reserve(self, client_id: str) -> None:
        """Subscribe for a browser that is about to be paired: its `add` or `release` follows.

        Raises:
            PairingUnavailable: Redis does not accept the subscription.
        """
        self._reserved.add(client_id)
        self._start()
        try:
            await self._subscribe(browser_channel(client_id))
        except BaseException:
            await self.release(client_id)
            raise

    async def release(self, client_id: str) -> None:
        """End the subscription of a browser that is not connected."""
        name = browser_channel(client_id)
        self._reserved.discard(client_id)
        self._subscribed.pop(name, None)
        try:
            if self._channel is not None and self._subscribed:
                await self._channel.unsubscribe(name)
        except redis_errors() as error:
            self._redis.failed(error)
        if not self._subscribed:
            await self._stop()

    async def add(self, connection: ExtensionConnection) -> None:
        """Deliver messages to a browser from now on; an older connection of it is closed. For a
        browser with a reservation nothing can fail: none has an action for it yet.

        Raises:
            PairingUnavailable: Redis does not accept the subscription.
        """
        older = self._connections.get(connection.client_id)
        if older is not None:
            older.close("replaced")
        self._connections[connection.client_id] = connection
        if connection.client_id in self._reserved:
            self._reserved.remove(connection.client_id)
            return
        self._start()
        await self._subscribe(browser_channel(connection.client_id))
        await self._report_reconnect(connection.client_id)

    async def remove(self, connection: ExtensionConnection) -> None:
        """Deliver no more messages to a browser."""
        if self._connections.get(connection.client_id) is not connection:
            return
        del self._connections[connection.client_id]
        await self.release(connection.client_id)

    def state_changed(self, connection: ExtensionConnection) -> None:
        """Keep the state of a browser soon."""
        connection.version += 1
        connection.has_new_state = True
        self._state_changed.set()

    async def close(self) -> None:
        """Close all connections, because the server stops; wait for that for CLOSE_S at most."""
        for connection in list(self._connections.values()):
            connection.close("shutdown")
        until = time.monotonic() + CLOSE_S
        while self._connections and time.monotonic() < until:
            await asyncio.sleep(0.01)

    def _start(self) -> None:
        if not self._tasks:
            loops = (self._follow(), self._keep(), self._write_snapshots())
            self._tasks = [asyncio.create_task(loop) for loop in loops]

    async def _stop(self) -> None:
        tasks, self._tasks, self._channel = self._tasks, [], None
        self._is_ready.clear()
        await cancel_and_wait(tasks)
        if not self._subscribed:  # no browser has connected meanwhile
            await self.redis.aclose()

    # --- messages from other processes ------------------------------------------------------------

    async def _subscribe(self, name: str) -> None:
        confirmed = self._subscribed[name] = asyncio.Event()
        try:
            async with asyncio.timeout(SUBSCRIBE_S):
                await self._is_ready.wait()
                if self._channel is not None:
                    await self._channel.subscribe(name)
                await confirmed.wait()
        except redis_errors() as error:
            raise PairingUnavailable from error

    async def _report_reconnect(self, client_id: str) -> None:
        """Have the callers of unanswered actions send them again: the browser may have lost them,
        or its program may have been stopped in the middle.
        """
        try:
            for call in await self.calls.list_open(client_id):
                message = {"kind": "reconnected", "actionId": call.action_id}
                await self.calls.publish(call.reply_to, message)
        except redis_errors() as error:
            raise PairingUnavailable from error

    async def _follow(self) -> None:
        while True:
            try:
                async with subscription(control_channel(), *self._subscribed) as channel:
                    self._channel = channel
                    self._is_ready.set()
                    await self._receive(channel)
            except redis_errors() as error:
                self._redis.failed(error)
                self._is_ready.clear()
                self._channel = None
                for connection in list(self._connections.values()):
                    connection.close("unavailable")
                await asyncio.sleep(RETRY_S)

    async def _receive(self, channel: PubSub) -> None:
        async for message in messages_of(channel):
            name = message["channel"].decode()
            if message["type"] == "subscribe":
                self._redis.recovered()
                if name in self._subscribed:
                    self._subscribed[name].set()
            elif connection := self._connections.get(name.rpartition(":")[2]):
                connection.receive(message["data"])

    # --- the rows ---------------------------------------------------------------------------------

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(KEEP_S)
            connections = list(self._connections.values())
            seen = [one.client_id for one in connections if one.was_seen]
            answered = [one.client_id for one in connections if one.has_answered]
            for connection in connections:
                connection.was_seen = connection.has_answered = False
            ids = {one.client_id: one.connection_id for one in connections}
            try:
                ended = await in_thread(keep_connected, ids, seen=seen, answered=answered)
            except Error as error:
                self._database.failed(error)
                continue
            self._database.recovered()
            for connection in connections:
                if connection.client_id in ended:
                    connection.close(ended[connection.client_id])

    # --- the snapshots ----------------------------------------------------------------------------

    async def _write_snapshots(self) -> None:
        while True:
            await self._state_changed.wait()
            self._state_changed.clear()
            started_at = time.monotonic()
            changed = [one for one in self._connections.values() if one.has_new_state and one.state]
            states = [(one.client_id, _snapshot(one)) for one in changed]
            try:
                await write_snapshots(self.redis, states)
            except redis_errors() as error:
                self._redis.failed(error)
            await asyncio.sleep(max(0.0, started_at + SNAPSHOT_S - time.monotonic()))


def _snapshot(connection: ExtensionConnection) -> dict[str, Any]:
    connection.has_new_state = False
    state = connection.state.as_dict() if connection.state else None
    return {"seq": connection.version, "at": now_ms(), "state": state}


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, ExtensionHub] = WeakKeyDictionary()


def get_extension_hub() -> ExtensionHub:
    """Return the hub of the running event loop."""
    loop = asyncio.get_running_loop()
    hub = _hubs.get(loop)
    if hub is None:
        hub = _hubs[loop] = ExtensionHub()
    return hub
