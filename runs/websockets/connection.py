"""One WebSocket of a task, as plain ASGI: who may open it, who it is, and frames there and back.

Who comes from a page has to come from one of ours (Origin), and shows a bearer token in the header,
or a token or a single-use ticket in its first frame.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

import orjson
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.db import Error

from decisions.api.drf import caller_of, is_local_call
from decisions.errors import Forbidden, NotAuthenticated, Refused
from decisions.identity.principals import Principal, authenticate
from decisions.infra.cancellation import ended
from decisions.infra.threads import in_thread
from runs.conversations.errors import TaskNotFound
from runs.conversations.selectors import get_task
from runs.conversations.tickets import redeem_ticket
from runs.websockets import conversation_frames

AUTH_S = 10.0  # until when the first frame has to have come
SEND_S = 30.0  # a reader that takes nothing for this long is cut off
CHECK_S = 15.0  # how often a token is asked whether it is still good
# Close codes: RFC 6455's, and 4000 + the HTTP status of the reason.
GOING_AWAY, NO_BYTES, TOO_SLOW = 1001, 1003, 4408
log = logging.getLogger(__name__)
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class CloseSocket(Exception):
    """The connection ends with this code."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


class ClientDisconnected(Exception):
    """The other side hung up."""


Serve = Callable[["TaskSocket", Principal], Awaitable[None]]


async def serve_socket(
    scope: Mapping[str, Any], receive: Receive, send: Send, *, task_id: str, serve: Serve
) -> None:
    """Serve one connection of a task to its end, once it is known who it is."""
    await receive()  # websocket.connect
    request = ASGIRequest({**scope, "type": "http", "method": "GET"}, BytesIO())
    try:
        _check_origin(request)
        principal = await in_thread(caller_of, request)
    except (Refused, DisallowedHost, Error):
        await send({"type": "websocket.close", "code": 4403})  # before the handshake: a plain 403
        return
    await send({"type": "websocket.accept"})
    line = TaskSocket(request, task_id, receive, send)
    with contextlib.suppress(ClientDisconnected, OSError):
        try:
            await serve(line, principal or await line.authenticated())
        except CloseSocket as over:
            await send(_goodbye(over))
        except Error as error:
            log.warning("a line is closed: %s", error, extra={"taskId": task_id})
            await send(_goodbye(CloseSocket(GOING_AWAY, "the database is away; come back")))


def _goodbye(over: CloseSocket) -> Message:
    reason = over.reason.encode()[:120].decode(errors="ignore")  # 123 bytes at most: RFC 6455
    return {"type": "websocket.close", "code": over.code, "reason": reason}


def _check_origin(request: ASGIRequest) -> None:
    """Refuse a page of elsewhere; what is no page sends no Origin.

    Raises:
        Forbidden: Neither our own nor one of CONTINUITY_TRUSTED_ORIGINS.
        DisallowedHost: The Host names another server.
    """
    host, origin = request.get_host(), request.META.get("HTTP_ORIGIN")
    if origin is None or origin in settings.CSRF_TRUSTED_ORIGINS:
        return
    try:
        found = urlsplit(origin)
    except ValueError:
        found = urlsplit("")
    if found.scheme not in ("http", "https") or found.netloc.lower() != host.lower():
        raise Forbidden("The Origin is not one of this server's.")


class TaskSocket:
    """One open connection.

    Attributes:
        after: the seq that the page says it has, in its address or its first frame.
    """

    def __init__(self, request: ASGIRequest, task_id: str, receive: Receive, send: Send) -> None:
        self.request, self.task_id = request, task_id
        self._receive, self._send = receive, send
        self._sending = asyncio.Lock()
        self.after: int | None = None

    async def authenticated(self) -> Principal:
        """Return who shows a token or a ticket in the first frame.

        Raises:
            Over: Nobody does.
        """
        try:
            async with asyncio.timeout(AUTH_S):
                event = await self.next()
        except TimeoutError:
            raise CloseSocket(4401, "no credential came") from None
        try:
            frame = conversation_frames.read_frame(event, task_id=self.task_id)
            principal = await in_thread(self._caller, frame)
        except Refused as refusal:
            await self.put(conversation_frames.refused(conversation_frames.id_of(event), refusal))
            raise CloseSocket(4401, refusal.message) from None
        self.after = frame.get("after")
        await self.put(conversation_frames.done(frame.get("id"), {"taskId": self.task_id}))
        return principal

    def _caller(self, frame: Mapping[str, Any]) -> Principal:
        if frame["type"] != "auth" or ("ticket" in frame) == ("token" in frame):
            raise NotAuthenticated("The first frame is an auth with a ticket or a token.")
        if "ticket" in frame:
            principal = redeem_ticket(frame["ticket"], task_id=self.task_id)
        else:
            principal = authenticate(frame["token"])
        return principal if is_local_call(self.request) else principal.at_trust("remote")

    async def task(self, caller: Principal) -> dict[str, Any]:
        """Return the task as it is.

        Raises:
            Over: The caller may not see it, or there is none.
        """
        try:
            return await in_thread(get_task, principal=caller, task_id=self.task_id)
        except Forbidden as refusal:
            raise CloseSocket(4403, refusal.message) from None
        except TaskNotFound as refusal:
            raise CloseSocket(4404, refusal.message) from None

    async def next(self) -> Message:
        """Return the next frame as it came.

        Raises:
            Gone, Over: There is none, or it is no text.
        """
        event = await self._receive()
        if event["type"] == "websocket.disconnect":
            raise ClientDisconnected
        if event.get("text") is None:
            raise CloseSocket(NO_BYTES, "frames are texts")
        return event

    async def put(self, frame: Mapping[str, Any]) -> None:
        """Send a frame; whoever takes nothing for SEND_S is cut off.

        Raises:
            Gone, Over: It cannot be sent.
        """
        text = orjson.dumps(frame).decode()
        try:
            async with asyncio.timeout(SEND_S), self._sending:
                await self._send({"type": "websocket.send", "text": text})
        except TimeoutError:
            raise CloseSocket(TOO_SLOW, "nothing was read for too long") from None
        except OSError:
            raise ClientDisconnected from None


async def run_until_first(*work: Awaitable[None]) -> None:
    """Do several things until one of them is over, and raise what ended it."""
    tasks = {asyncio.ensure_future(one) for one in work}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        raised = await ended(tasks)
    for error in raised:
        if error is not None:
            raise error
