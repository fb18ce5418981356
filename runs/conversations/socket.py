"""The WebSocket of a task, as plain ASGI: what a page says, and the task's log as it is written.

Who comes from a page has to come from one of ours (Origin), and shows a bearer token in the header,
or a token or a single-use ticket in its first frame. What is wrong with a frame is answered; only
who may not be here, says nothing, or reads nothing is cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

import orjson
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.db import Error

from decisions.errors import Forbidden, InvalidInput, NotAuthenticated, NotReady, Refused
from decisions.principals import Principal, authenticate
from decisions.rest import caller_of, count_caller, is_local_call
from decisions.threads import in_thread
from runs.conversations import frames, services
from runs.conversations.errors import TaskNotFound
from runs.conversations.reading import read_task_page
from runs.conversations.selectors import get_task
from runs.conversations.tickets import still_may, use_ticket
from runs.events.hub import get_hub
from runs.events.listener import Listener
from runs.events.stream import PAGE

PATH = "/ws/tasks/"
AUTH_S = 10.0  # until when the first frame has to have come
SEND_S = 30.0  # a reader that takes nothing for this long is cut off
CHECK_S = 15.0  # how often a token is asked whether it is still good
# Close codes: RFC 6455's, and 4000 + the HTTP status of the reason.
GOING_AWAY, NO_BYTES, TOO_SLOW = 1001, 1003, 4408
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class _Over(Exception):
    """The connection ends with this code."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


class _Gone(Exception):
    """The other side hung up."""


async def serve_task(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Serve one connection to `/ws/tasks/{taskId}`."""
    await receive()  # websocket.connect
    request = ASGIRequest({**scope, "type": "http", "method": "GET"}, BytesIO())
    task_id = str(scope["path"]).removeprefix(PATH)
    try:
        _check_origin(request)
        principal = await in_thread(caller_of, request)
    except (Refused, DisallowedHost, Error):
        await send({"type": "websocket.close", "code": 4403})  # before the handshake: a plain 403
        return
    await send({"type": "websocket.accept"})
    connection = Connection(request, task_id, receive, send)
    with contextlib.suppress(_Gone):
        try:
            await connection.serve(principal)
        except _Over as over:
            told = {"type": "websocket.close", "code": over.code, "reason": over.reason[:120]}
            await send(told)


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


class Connection:
    """One open connection; one frame of the page is answered after the other."""

    def __init__(self, request: ASGIRequest, task_id: str, receive: Receive, send: Send) -> None:
        self._request, self._task_id = request, task_id
        self._receive, self._send = receive, send
        self._sending = asyncio.Lock()
        self._after: int | None = None

    async def serve(self, principal: Principal | None) -> None:
        """Tell how the task is, then what happens, and do what the page says, until it hangs up.

        Raises:
            _Over: The connection is to be closed.
            _Gone: It is.
        """
        self._after = self._after_in_query()
        caller = principal or await self._authenticated()
        async with get_hub().listen(self._task_id) as (_, listener):
            await self._tell_state(caller)
            telling = asyncio.create_task(self._tell(caller, listener))
            hearing = asyncio.create_task(self._hear(caller))
            both = {telling, hearing}
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in both:
                    one.cancel()
                ended = await asyncio.gather(*both, return_exceptions=True)
        for outcome in ended:
            if isinstance(outcome, Exception):
                raise outcome

    # --- who it is --------------------------------------------------------------------------------

    def _after_in_query(self) -> int | None:
        text = self._request.GET.get("after", "")
        if text and not (text.isascii() and text.isdigit() and len(text) <= 15):
            raise _Over(4400, "after: it has to be the seq of an event")
        return int(text) if text else None

    async def _authenticated(self) -> Principal:
        """Return who shows a token or a ticket in the first frame."""
        try:
            async with asyncio.timeout(AUTH_S):
                event = await self._next()
        except TimeoutError:
            raise _Over(4401, "no credential came") from None
        try:
            frame = frames.read_frame(event, task_id=self._task_id)
            principal = await in_thread(self._caller, frame)
        except Refused as refusal:
            await self._put(frames.refused(frames.id_of(event), refusal))
            raise _Over(4401, refusal.message) from None
        self._after = frame.get("after", self._after)
        await self._put(frames.done(frame.get("id"), {"taskId": self._task_id}))
        return principal

    def _caller(self, frame: Mapping[str, Any]) -> Principal:
        if frame["type"] != "auth" or ("ticket" in frame) == ("token" in frame):
            raise NotAuthenticated("The first frame is an auth with a ticket or a token.")
        if "ticket" in frame:
            principal = use_ticket(frame["ticket"], task_id=self._task_id)
        else:
            principal = authenticate(frame["token"])
        return principal if is_local_call(self._request) else principal.at_trust("remote")

    # --- what happens -----------------------------------------------------------------------------

    async def _tell_state(self, caller: Principal) -> None:
        try:
            task = await in_thread(get_task, principal=caller, task_id=self._task_id)
        except Forbidden as refusal:
            raise _Over(4403, refusal.message) from None
        except TaskNotFound as refusal:
            raise _Over(4404, refusal.message) from None
        if self._after is None:
            self._after = task["lastSeq"]
        await self._put(frames.snapshot(task))

    async def _tell(self, caller: Principal, listener: Listener) -> None:
        """Send the log from where the page stands, and ask now and then whether it still may."""
        listener.wake_every(CHECK_S)
        after = self._after or 0
        while not listener.is_closed:
            if listener.is_behind:
                page, reached = await in_thread(self._page, caller, after)
                after = await self._tell_all(page["events"], after)
                if len(page["events"]) < PAGE:
                    listener.has(after, of=reached)
            elif batches := listener.take():
                for batch in batches:
                    after = await self._tell_all(batch.events, after)
            else:
                await listener.news()
                if not listener.has_news and not await in_thread(still_may, caller):
                    raise _Over(4401, "the token was revoked")
        raise _Over(GOING_AWAY, "the server goes away; come back")

    def _page(self, caller: Principal, after: int) -> tuple[dict[str, Any], int]:
        try:
            return read_task_page(caller, self._task_id, after, PAGE)
        except TaskNotFound as refusal:
            raise _Over(4404, refusal.message) from None

    async def _tell_all(self, events: Any, after: int) -> int:
        for event in events:
            await self._put(frames.event_frame(self._task_id, event))
            after = event["seq"]
        return after

    # --- what the page says -----------------------------------------------------------------------

    async def _hear(self, caller: Principal) -> None:
        while True:
            event = await self._next()
            try:
                await self._put(await self._answer(caller, event))
            except Refused as refusal:
                await self._put(frames.refused(frames.id_of(event), refusal))

    async def _answer(self, caller: Principal, event: Message) -> dict[str, Any]:
        """Do what a frame says.

        Raises:
            Refused: It is no good, or the deed is refused.
        """
        await in_thread(count_caller, caller)
        frame = frames.read_frame(event, task_id=self._task_id)
        frame_id = frame.get("id")
        if frame["type"] == "ping":
            return frames.pong(frame_id)
        if frame["type"] == "auth":
            raise InvalidInput("type: this connection is authenticated already.")
        deed = partial(self._do, caller, frame["message"], frame_id)
        try:
            return frames.done(frame_id, await in_thread(deed))
        except Error:
            raise NotReady("The database did not take the message.") from None

    def _do(
        self, caller: Principal, message: Mapping[str, Any], frame_id: str | None
    ) -> dict[str, Any]:
        if not still_may(caller):
            raise NotAuthenticated("The token was revoked.")
        if message["type"] == "user_message":
            return services.add_message(
                principal=caller, task_id=self._task_id, content=message["content"],
                on_busy=message.get("onBusy", "queue"),
                output_schema=message.get("outputSchema"), key=frame_id,
            )  # fmt: skip
        deeds = {"takeover": services.take_over_task, "resume": services.resume_task,
                 "stop": services.stop_task}  # fmt: skip
        return deeds[message["type"]](principal=caller, task_id=self._task_id)

    # --- the line ---------------------------------------------------------------------------------

    async def _next(self) -> Message:
        event = await self._receive()
        if event["type"] == "websocket.disconnect":
            raise _Gone
        if event.get("text") is None:
            raise _Over(NO_BYTES, "frames are texts")
        return event

    async def _put(self, frame: Mapping[str, Any]) -> None:
        """Send a frame; whoever takes nothing for SEND_S is cut off."""
        text = orjson.dumps(frame).decode()
        try:
            async with asyncio.timeout(SEND_S), self._sending:
                await self._send({"type": "websocket.send", "text": text})
        except TimeoutError:
            raise _Over(TOO_SLOW, "nothing was read for too long") from None
        except OSError:
            raise _Gone from None
