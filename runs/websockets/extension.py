"""The WebSocket of paired browsers, `/ws/plugin` (docs/extension-protocol.md).

A malformed or refused message is answered with an ack that has an error; the connection stays open.
It is closed when the browser may not connect, sends binary or too much, does not read, or has
connected again; and when the database or Redis is unavailable, so that it connects again later.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.db import Error

from artifacts.storage.blobs import presigned_url
from decisions.foundation.errors import Conflict, InvalidInput, NotAuthenticated, NotFound, Refused
from decisions.foundation.infra.clock import now_ms
from decisions.foundation.infra.ids import new_id
from decisions.foundation.infra.redis import redis_errors
from decisions.foundation.infra.threads import in_thread
from decisions.rest_base.drf import record_unknown_credential
from runners import metrics
from runners.actions.own_pages import own_origins
from runners.models import new_client_id
from runners.paired_browser.connections.hub import (
    NOT_PAIRED,
    ExtensionConnection,
    PairingUnavailable,
    get_extension_hub,
)
from runners.paired_browser.connections.session import ConnectionSession
from runners.paired_browser.pairing import registry
from runners.paired_browser.pairing.registry import Activation
from runners.paired_browser.pairing.tickets import check_ticket
from runners.paired_browser.protocol import messages
from runners.paired_browser.protocol.flood import (
    ConnectionBudget,
    MessageBudget,
    PendingConnections,
)
from runs.live.paired_browser import change_task, tasks_of_browser
from runs.websockets.connection import (
    AUTH_S,
    GOING_AWAY,
    ClientDisconnected,
    CloseSocket,
    Receive,
    Send,
    TextSocket,
    close_message,
    run_until_first,
)

PATH = "/ws/plugin"
PING_S = 20.0  # interval of pings in each direction, and of complete states
SILENCE_S = 60.0  # a browser that sends nothing for so long is disconnected
SOCKETS_MAX = 2000  # per process
PENDING_MAX, PENDING_PER_PEER = 200, 50  # connections of a process without an accepted credential
UNAUTHENTICATED, TOO_LARGE, FLOOD = 4401, 1009, 4429
log = logging.getLogger(__name__)
_connections = ConnectionBudget()
_pending = PendingConnections(PENDING_MAX, PENDING_PER_PEER)
Message = dict[str, Any]


async def serve_extension(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Serve one connection to `/ws/plugin`."""
    await receive()  # websocket.connect
    request = ASGIRequest({**scope, "type": "http", "method": "GET"}, BytesIO())
    if not _is_allowed(request):
        await send({"type": "websocket.close", "code": 4403})  # before the handshake: a plain 403
        return
    await send({"type": "websocket.accept"})
    socket = TextSocket(receive, send)
    unavailable: tuple[type[Exception], ...] = (Error, PairingUnavailable, *redis_errors())
    with contextlib.suppress(ClientDisconnected, OSError):
        try:
            await _serve(socket, request)
        except CloseSocket as close:
            await send(close_message(close))
        except unavailable as error:
            log.warning("the connection of a browser is closed: %s", error or type(error).__name__)
            reason = "the database or Redis is unavailable; reconnect later"
            await send(close_message(CloseSocket(GOING_AWAY, reason)))


def _is_allowed(request: ASGIRequest) -> bool:
    """Return whether a program may connect: the extension, or one that is not a page."""
    try:
        request.get_host()
    except DisallowedHost:
        return False
    origin = request.META.get("HTTP_ORIGIN")
    return origin is None or origin in settings.PLUGIN_ORIGINS


async def _serve(socket: TextSocket, request: ASGIRequest) -> None:
    hub = get_extension_hub()
    with _pending.count(request.META.get("REMOTE_ADDR", "")) as has_room:
        if not has_room or hub.count >= SOCKETS_MAX:
            raise CloseSocket(FLOOD, "too many connections")
        message, activation = await _activate(socket, request)
    connection = ExtensionConnection(activation)
    try:
        if not _connections.take(activation.client_id):
            raise CloseSocket(FLOOD, "too many connections")
        await hub.add(connection)
        result = await in_thread(_activated, activation, request)
        await socket.send(messages.ack(message["id"], result=result))
        browser = ExtensionSocket(socket, connection)
        await run_until_first(browser.receive(), browser.send_queue(), browser.ping())
    except CloseSocket as close:  # before the clean-up, which a server that stops does not await
        await socket.close(close)
    finally:
        await hub.remove(connection)
        with contextlib.suppress(Error):
            await in_thread(
                registry.disconnect_browser, activation.client_id, activation.connection_id
            )


async def _activate(socket: TextSocket, request: ASGIRequest) -> tuple[Message, Activation]:
    """Authenticate a browser by its first message.

    Raises:
        CloseSocket: It sent none in time, a large one, or no valid credential.
        PairingUnavailable: Redis is unavailable.
    """
    try:
        async with asyncio.timeout(AUTH_S):
            event = await socket.receive()
    except TimeoutError:
        raise CloseSocket(UNAUTHENTICATED, "no credential was sent in time") from None
    try:
        message = messages.read_activation(_text_of(event, messages.FIRST_FRAME_BYTES))
        return message, await _authenticated(message)
    except NotAuthenticated as refusal:
        await in_thread(record_unknown_credential, request)
        is_over = isinstance(refusal, registry.NotPaired)
        raise CloseSocket(NOT_PAIRED if is_over else UNAUTHENTICATED, refusal.message) from None
    except Refused as refusal:
        raise CloseSocket(UNAUTHENTICATED, refusal.message) from None


async def _authenticated(message: Message) -> Activation:
    if "ticket" in message:
        return await _paired(message["ticket"], message)
    if "clientId" in message and "secret" in message:
        credential = message["clientId"], message["secret"]
        return await in_thread(registry.reconnect_browser, *credential, message)
    raise NotAuthenticated("activate_extension needs a ticket, or a clientId and its secret.")


async def _paired(ticket: str, message: Message) -> Activation:
    """Pair a browser. Its subscription comes first: without Redis no ticket is used up."""
    await in_thread(check_ticket, ticket)
    hub, client_id = get_extension_hub(), new_client_id()
    await hub.reserve(client_id)
    try:
        return await in_thread(registry.pair_browser_of, ticket, message, client_id=client_id)
    except BaseException:
        await hub.release(client_id)
        raise


def _activated(activation: Activation, request: ASGIRequest) -> Message:
    scheme = "https" if request.scheme in ("wss", "https") else "http"
    origin = f"{scheme}://{request.get_host()}"
    return {
        "clientId": activation.client_id,
        "secret": activation.secret,
        "name": activation.name,
        "principal": activation.principal.id,
        "serverTime": now_ms(),
        "pingIntervalMs": int(PING_S * 1000),
        "syncIntervalMs": int(PING_S * 1000),
        "ownOrigins": list(dict.fromkeys([origin, *own_origins()])),
        "artifactOrigins": _artifact_origins(origin),
        "tasks": tasks_of_browser(principal=activation.principal, client_id=activation.client_id),
    }


def _artifact_origins(own: str) -> list[str]:
    """Return the origins of addresses to which a browser sends, and from which it reads files."""
    signed = presigned_url("0" * 64, disposition="attachment")
    if signed is None:
        return [own]
    parts = urlsplit(signed)
    return [own, f"{parts.scheme}://{parts.netloc}"]


def _text_of(event: Mapping[str, Any], limit: int = messages.FRAME_BYTES) -> str:
    text = str(event["text"])
    if len(text) > limit:
        raise CloseSocket(TOO_LARGE, f"a message has more than {limit // 1024} KiB")
    return text


class ExtensionSocket:
    """The open connection of an activated browser. Its messages are handled one after another."""

    def __init__(self, socket: TextSocket, connection: ExtensionConnection) -> None:
        self._socket, self._connection = socket, connection
        self._session = ConnectionSession(connection, get_extension_hub())
        self._budget = MessageBudget()
        self._is_confirmed = False
        self._received_at = asyncio.get_running_loop().time()
        self._handlers: Mapping[str, Callable[[Message], Awaitable[Message | None]]] = {
            "activate_extension": self._refuse_activation,
            "full_state_sync": self._sync_state,
            "tab_event": self._apply_event,
            "ack": self._forward_ack,
            "browser_action_result": self._session.accept_result,
            "takeover": self._change_task,
            "resume": self._change_task,
            "stop": self._change_task,
            "activity": self._change_task,
            "ping": self._answer_ping,
            "pong": self._take_pong,
        }

    async def receive(self) -> None:
        """Handle the browser's messages until it disconnects."""
        while True:
            event = await self._socket.receive()
            if not self._budget.take(len(str(event["text"]))):
                raise CloseSocket(FLOOD, "too many messages")
            text = _text_of(event)
            self._received_at = asyncio.get_running_loop().time()
            self._connection.was_seen = True
            await self._confirm_secret()
            answer = await self._answer(text)
            if answer is not None:
                await self._socket.send(answer)

    async def send_queue(self) -> None:
        """Send the messages to the browser, until the last closes the connection."""
        while True:
            message = await self._connection.outgoing.get()
            if isinstance(message, tuple):
                raise CloseSocket(*message)
            head = {"v": messages.VERSION, "id": new_id("msg_")}
            await self._socket.send({**head, **message})

    async def ping(self) -> None:
        """Ping the browser every PING_S; disconnect it if it sends nothing for SILENCE_S."""
        while True:
            await asyncio.sleep(PING_S)
            if asyncio.get_running_loop().time() - self._received_at > SILENCE_S:
                raise CloseSocket(GOING_AWAY, "the browser sent nothing for too long; reconnect")
            await self._socket.send(messages.ping(new_id("ping_")))

    async def _confirm_secret(self) -> None:
        if self._is_confirmed:
            return
        self._is_confirmed = True
        connection = self._connection
        await in_thread(registry.confirm_secret, connection.client_id, connection.connection_id)

    async def _answer(self, text: str) -> Message | None:
        try:
            message = messages.read_message(text)
        except InvalidInput as invalid:
            metrics.extension_message("invalid")
            return messages.refusal(messages.id_of(text), "BAD_REQUEST", invalid.message)
        metrics.extension_message(message["type"])
        try:
            return await self._handlers[message["type"]](message)
        except Refused as refusal:
            return messages.refusal(message["id"], _code_of(refusal), refusal.message)

    # --- each type --------------------------------------------------------------------------------

    async def _refuse_activation(self, message: Message) -> Message:
        text = "type: this connection is activated already."
        return messages.refusal(message["id"], "BAD_REQUEST", text)

    async def _sync_state(self, message: Message) -> Message:
        return self._session.accept_state(message)

    async def _apply_event(self, message: Message) -> Message:
        return self._session.apply_event(message)

    async def _forward_ack(self, message: Message) -> None:
        self._connection.has_answered = True
        await self._session.forward_ack(message)

    async def _answer_ping(self, message: Message) -> Message:
        return messages.pong(message.get("id"))

    async def _take_pong(self, message: Message) -> None:
        self._connection.has_answered = True

    async def _change_task(self, message: Message) -> Message:
        connection = self._connection
        change = partial(
            change_task,
            principal=connection.principal,
            client_id=connection.client_id,
            message=message,
        )
        return messages.ack(message["id"], result=await in_thread(change))


def _code_of(refusal: Refused) -> str:
    if isinstance(refusal, NotFound):
        return "NOT_FOUND"
    return "CONFLICT" if isinstance(refusal, Conflict) else refusal.code
