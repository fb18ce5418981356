"""The WebSocket of a task's live page, `/ws/tasks/{taskId}/live`: sends pictures, and forwards the
input of a person who has taken the page over. Authentication is as for the task's own WebSocket.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import Error

from decisions.foundation.errors import Conflict, NotAuthenticated, NotReady, Refused
from decisions.foundation.infra.redis import redis_errors
from decisions.foundation.infra.threads import in_thread
from decisions.identity.principals import Principal, is_credential_active
from runs.conversations.selectors import is_taken_over
from runs.live.no_page import no_page_reason
from runs.streaming.credential_checks import is_still_active
from runs.websockets.connection import (
    CREDENTIAL_ENDED,
    GOING_AWAY,
    CloseSocket,
    Receive,
    Send,
    TaskSocket,
    run_until_first,
    serve_socket,
)
from runs.websockets.conversation import PATH
from runs.websockets.conversation_frames import ack, error_ack, id_of, pong
from runs.websockets.live_frames import live_frame, read_frame
from runs.websockets.live_viewer import PageSubscription, subscribe_to_page

END = "/live"
PATIENCE_S = 5.0  # after this long without a message from a worker there is no page to show
PER_SECOND = 60  # frames of input; frames of a faster client wait in its socket
VIEWERS_MAX = 32  # per process,
VIEWERS_OF_CALLER_MAX = 8  # and of these, of one caller
TOO_MANY = 4429
log = logging.getLogger(__name__)
_viewers: Counter[str] = Counter()  # open live pages, by the id of the caller


def is_live_path(path: str) -> bool:
    """Return whether a path is the address of a live page."""
    return path.startswith(PATH) and path.endswith(END)


async def serve_live(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Serve one connection to `/ws/tasks/{taskId}/live`."""
    task_id = str(scope["path"]).removeprefix(PATH).removesuffix(END)
    await serve_socket(scope, receive, send, task_id=task_id, serve=_serve)


async def _serve(socket: TaskSocket, caller: Principal) -> None:
    await socket.get_task(caller)  # closes the socket if the caller may not read the task
    with _counted(caller):
        try:
            async with subscribe_to_page(socket.task_id) as (subscription, receiving):
                page = LivePageSocket(socket, caller, subscription)
                await run_until_first(
                    page.send_messages(),
                    page.receive_input(),
                    page.check(),
                    subscription.announce(),
                    receiving,
                )
        except redis_errors() as error:
            log.warning("a live page is closed: %s", error or type(error).__name__)
            raise CloseSocket(GOING_AWAY, "live pages are unavailable; reconnect later") from None


@contextmanager
def _counted(caller: Principal) -> Iterator[None]:
    """Count a live page as long as it is open.

    Raises:
        CloseSocket: This process serves its maximum already, or that of the caller.
    """
    if _viewers.total() >= VIEWERS_MAX:
        raise CloseSocket(TOO_MANY, "too many live pages are open on this server")
    if _viewers[caller.id] >= VIEWERS_OF_CALLER_MAX:
        raise CloseSocket(
            TOO_MANY, f"you have {VIEWERS_OF_CALLER_MAX} live pages open: close one first"
        )
    _viewers[caller.id] += 1
    try:
        yield
    finally:
        _viewers[caller.id] -= 1
        if not _viewers[caller.id]:
            del _viewers[caller.id]


class LivePageSocket:
    """One viewer's authenticated connection."""

    def __init__(
        self, socket: TaskSocket, caller: Principal, subscription: PageSubscription
    ) -> None:
        self._socket, self._caller, self._subscription = socket, caller, subscription
        self._sent_reason = ""

    async def send_messages(self) -> None:
        """Send the worker's messages, each as soon as the client has read the one before."""
        async for message in self._subscription.messages:
            if message.get("page") is False:
                await self._send_reason()
                continue
            self._sent_reason = ""
            await self._socket.send(live_frame(message))

    async def check(self) -> None:
        """Send why there is no page when no worker sends one; close when the token has ended."""
        started_at = time.monotonic()
        while True:
            await asyncio.sleep(1.0)
            if (
                time.monotonic() - max(started_at, self._subscription.received_at or 0.0)
                > PATIENCE_S
            ):
                await self._send_reason()
            if not await is_still_active(self._caller):
                raise CloseSocket(4401, CREDENTIAL_ENDED)

    async def _send_reason(self) -> None:
        reason = await in_thread(no_page_reason, self._socket.task_id)
        if reason != self._sent_reason:
            self._sent_reason = reason
            state = {"type": "live_state", "page": False, "message": reason}
            await self._socket.send(live_frame(state))

    async def receive_input(self) -> None:
        """Forward the client's input to the worker. A frame is answered if it has an id or is
        refused.
        """
        while True:
            event = await self._socket.receive()
            started_at = time.monotonic()
            try:
                answer = await self._answer(event)
            except Refused as refusal:
                answer = error_ack(id_of(event), refusal)
            if answer is not None:
                await self._socket.send(answer)
            await asyncio.sleep(max(0.0, started_at + 1 / PER_SECOND - time.monotonic()))

    async def _answer(self, event: Mapping[str, Any]) -> dict[str, Any] | None:
        frame = read_frame(event)
        frame_id = frame.get("id")
        if frame["type"] == "ping":
            return pong(frame_id)
        try:
            await in_thread(self._check_may_act)
        except Error:
            raise NotReady("The database did not answer.") from None
        await self._subscription.send(
            {
                "kind": "input",
                "by": self._caller.id,
                "trust": self._caller.trust,
                "events": frame["events"],
            }
        )
        return None if frame_id is None else ack(frame_id, {"taskId": self._socket.task_id})

    def _check_may_act(self) -> None:
        """Check that the caller may act on the page now.

        Raises:
            Forbidden: The caller lacks the scope tasks:write.
            NotAuthenticated: The token was revoked or has expired.
            Conflict: The page is not taken over.
        """
        self._caller.require("tasks:write")
        if not is_credential_active(self._caller):
            raise NotAuthenticated(f"{CREDENTIAL_ENDED.capitalize()}.")
        if not is_taken_over(self._socket.task_id):
            raise Conflict("The agent has the page: take it over first.")
