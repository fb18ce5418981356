"""A WebSocket of a task, as plain ASGI: origin check, authentication, and frames in and out.

A page has to come from a trusted origin. A client authenticates with a bearer token in the header,
or with a token or a single-use ticket in its first frame.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from io import BytesIO
from typing import Any

import orjson
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.db import Error

from decisions.foundation.errors import Forbidden, NotAuthenticated, Refused
from decisions.foundation.infra.cancellation import cancel_and_wait
from decisions.foundation.infra.threads import in_thread
from decisions.identity.principals import Principal, authenticate
from decisions.rest_base.drf import authenticate_request, is_local_call, record_unknown_credential
from decisions.rest_base.origins import is_allowed_origin
from runs.conversations.errors import TaskNotFound
from runs.conversations.selectors import get_task
from runs.conversations.tickets import redeem_ticket
from runs.websockets import conversation_frames

AUTH_S = 10.0  # time for the first frame to arrive
SEND_S = 30.0  # a client that does not read a frame for this long is disconnected
CREDENTIAL_ENDED = "the token was revoked or has expired"
# Close codes: RFC 6455's, and 4000 + the HTTP status of the reason.
GOING_AWAY, NO_BYTES, TOO_SLOW = 1001, 1003, 4408
log = logging.getLogger(__name__)
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class CloseSocket(Exception):
    """Close the connection with this code and reason."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


class ClientDisconnected(Exception):
    """The client closed the connection."""


Serve = Callable[["TaskSocket", Principal], Awaitable[None]]


async def serve_socket(
    scope: Mapping[str, Any], receive: Receive, send: Send, *, task_id: str, serve: Serve
) -> None:
    """Authenticate a connection and serve it to its end."""
    await receive()  # websocket.connect
    request = ASGIRequest({**scope, "type": "http", "method": "GET"}, BytesIO())
    try:
        _check_origin(request)
        principal = await in_thread(authenticate_request, request)
    except (Refused, DisallowedHost, Error):
        await send({"type": "websocket.close", "code": 4403})  # before the handshake: a plain 403
        return
    await send({"type": "websocket.accept"})
    socket = TaskSocket(request, task_id, receive, send)
    with contextlib.suppress(ClientDisconnected, OSError):
        try:
            await serve(socket, principal or await socket.authenticate())
        except CloseSocket as close:
            await send(close_message(close))
        except Error as error:
            log.warning("a websocket is closed: %s", error, extra={"taskId": task_id})
            unavailable = CloseSocket(GOING_AWAY, "the database is unavailable; reconnect later")
            await send(close_message(unavailable))


def close_message(close: CloseSocket) -> Message:
    """Return the ASGI message that closes a connection."""
    reason = close.reason.encode()[:120].decode(errors="ignore")  # 123 bytes at most: RFC 6455
    return {"type": "websocket.close", "code": close.code, "reason": reason}


def _check_origin(request: ASGIRequest) -> None:
    """Refuse pages of other origins. Clients that are not pages send no Origin.

    Raises:
        Forbidden: The Origin is neither this server nor one of CONTINUITY_TRUSTED_ORIGINS.
        DisallowedHost: The Host names another server.
    """
    host, origin = request.get_host(), request.META.get("HTTP_ORIGIN")
    if origin is not None and not is_allowed_origin(origin, host):
        raise Forbidden("The Origin is not one of this server's.")


class TextSocket:
    """An open connection that carries JSON texts."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._sending = asyncio.Lock()

    async def receive(self) -> Message:
        """Return the next frame as the ASGI event that carries it.

        Raises:
            ClientDisconnected: The client closed the connection.
            CloseSocket: The frame is binary.
        """
        event = await self._receive()
        if event["type"] == "websocket.disconnect":
            raise ClientDisconnected
        if event.get("text") is None:
            raise CloseSocket(NO_BYTES, "frames must be text")
        return event

    async def send(self, frame: Mapping[str, Any]) -> None:
        """Send a frame.

        Raises:
            ClientDisconnected: The client closed the connection.
            CloseSocket: The client did not read the frame within SEND_S.
        """
        text = orjson.dumps(frame).decode()
        try:
            async with asyncio.timeout(SEND_S), self._sending:
                await self._send({"type": "websocket.send", "text": text})
        except TimeoutError:
            raise CloseSocket(TOO_SLOW, "the client did not read for too long") from None
        except OSError:
            raise ClientDisconnected from None

    async def close(self, close: CloseSocket) -> None:
        """Close the connection."""
        await self._send(close_message(close))


class TaskSocket(TextSocket):
    """An open connection of a task.

    Attributes:
        after: the seq that the client has already, from its first frame; None where it named none.
    """

    def __init__(self, request: ASGIRequest, task_id: str, receive: Receive, send: Send) -> None:
        super().__init__(receive, send)
        self.request, self.task_id = request, task_id
        self.after: int | None = None

    async def authenticate(self) -> Principal:
        """Return the principal of the token or ticket in the first frame.

        Raises:
            CloseSocket: No frame came in time, or its credential is not valid.
        """
        try:
            async with asyncio.timeout(AUTH_S):
                event = await self.receive()
        except TimeoutError:
            raise CloseSocket(4401, "no credential was sent in time") from None
        try:
            frame = conversation_frames.read_frame(event, task_id=self.task_id)
            principal = await in_thread(self._principal_of, frame)
        except Refused as refusal:
            frame_id = conversation_frames.id_of(event)
            await self.send(conversation_frames.error_ack(frame_id, refusal))
            raise CloseSocket(4401, refusal.message) from None
        self.after = frame.get("after")
        await self.send(conversation_frames.ack(frame.get("id"), {"taskId": self.task_id}))
        return principal

    def _principal_of(self, frame: Mapping[str, Any]) -> Principal:
        if frame["type"] != "auth" or ("ticket" in frame) == ("token" in frame):
            raise NotAuthenticated("The first frame must be an auth with a ticket or a token.")
        try:
            if "ticket" in frame:
                principal = redeem_ticket(frame["ticket"], task_id=self.task_id)
            else:
                principal = authenticate(frame["token"])
        except NotAuthenticated:
            record_unknown_credential(self.request)
            raise
        return principal if is_local_call(self.request) else principal.with_trust("remote")

    async def get_task(self, caller: Principal) -> dict[str, Any]:
        """Return the task.

        Raises:
            CloseSocket: The caller may not read it, or there is none.
        """
        try:
            return await in_thread(get_task, principal=caller, task_id=self.task_id)
        except Forbidden as refusal:
            raise CloseSocket(4403, refusal.message) from None
        except TaskNotFound as refusal:
            raise CloseSocket(4404, refusal.message) from None


async def run_until_first(*work: Awaitable[None]) -> None:
    """Run several coroutines until one of them ends, cancel the others, and raise its error."""
    tasks = {asyncio.ensure_future(one) for one in work}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        raised = await cancel_and_wait(tasks)
    for error in raised:
        if error is not None:
            raise error
