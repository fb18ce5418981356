"""The WebSocket of a task: what a page says, and the task's log as it is written.

What is wrong with a frame is answered; only who may not be here, says nothing, or reads nothing is
cut off.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from django.db import Error

from decisions.api.drf import count_caller
from decisions.errors import InvalidInput, NotAuthenticated, NotReady, Refused
from decisions.identity.principals import Principal, still_may
from decisions.infra.threads import in_thread
from runs.conversations import services
from runs.conversations.errors import TaskNotFound
from runs.streaming.hub import get_hub
from runs.streaming.sse import PAGE
from runs.streaming.subscriber import Subscriber
from runs.websockets import conversation_frames
from runs.websockets.connection import (
    CHECK_S,
    GOING_AWAY,
    CloseSocket,
    Message,
    Receive,
    Send,
    TaskSocket,
    run_until_first,
    serve_socket,
)
from runs.websockets.log_pages import read_task_page

PATH = "/ws/tasks/"


async def serve_task(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Serve one connection to `/ws/tasks/{taskId}`."""
    task_id = str(scope["path"]).removeprefix(PATH)
    await serve_socket(scope, receive, send, task_id=task_id, serve=_serve)


async def _serve(line: TaskSocket, caller: Principal) -> None:
    await ConversationSocket(line, caller).serve()


class ConversationSocket:
    """One open connection; one frame of the page is answered after the other."""

    def __init__(self, line: TaskSocket, caller: Principal) -> None:
        self._line, self._caller = line, caller
        self._task_id = line.task_id
        self._after = line.after

    async def serve(self) -> None:
        """Tell how the task is, then what happens, and do what the page says, until it hangs up.

        Raises:
            Over: The connection is to be closed.
            Gone: It is.
        """
        if self._after is None:
            self._after = self._after_in_query()
        async with get_hub().subscribe(self._task_id) as (_, listener):
            await self._tell_state()
            await run_until_first(self._tell(listener), self._hear())

    def _after_in_query(self) -> int | None:
        text = self._line.request.GET.get("after", "")
        if text and not (text.isascii() and text.isdigit() and len(text) <= 15):
            raise CloseSocket(4400, "after: it has to be the seq of an event")
        return int(text) if text else None

    # --- what happens -----------------------------------------------------------------------------

    async def _tell_state(self) -> None:
        task = await self._line.task(self._caller)
        if self._after is None:
            self._after = task["lastSeq"]
        await self._line.put(conversation_frames.snapshot(task))

    async def _tell(self, listener: Subscriber) -> None:
        """Send the log from where the page stands, and ask now and then whether it still may."""
        listener.wake_every(CHECK_S)
        after, checked = self._after or 0, time.monotonic()
        while not listener.is_closed:
            if time.monotonic() - checked >= CHECK_S:
                checked = time.monotonic()
                if not await in_thread(still_may, self._caller):
                    raise CloseSocket(4401, "the token was revoked")
            if listener.is_behind:
                page, reached = await in_thread(self._page, after)
                after = await self._tell_all(page["events"], after)
                if len(page["events"]) < PAGE:
                    listener.has(after, of=reached)
            elif batches := listener.take():
                for batch in batches:
                    after = await self._tell_all(batch.events, after)
            else:
                await listener.news()
        raise CloseSocket(GOING_AWAY, "the server goes away; come back")

    def _page(self, after: int) -> tuple[dict[str, Any], int]:
        try:
            return read_task_page(self._caller, self._task_id, after, PAGE)
        except TaskNotFound as refusal:
            raise CloseSocket(4404, refusal.message) from None

    async def _tell_all(self, events: Any, after: int) -> int:
        for event in events:
            await self._line.put(conversation_frames.event_frame(self._task_id, event))
            after = event["seq"]
        return after

    # --- what the page says -----------------------------------------------------------------------

    async def _hear(self) -> None:
        while True:
            event = await self._line.next()
            try:
                await self._line.put(await self._answer(event))
            except Refused as refusal:
                await self._line.put(
                    conversation_frames.refused(conversation_frames.id_of(event), refusal)
                )

    async def _answer(self, event: Message) -> dict[str, Any]:
        """Do what a frame says.

        Raises:
            Refused: It is no good, or the deed is refused.
        """
        await in_thread(count_caller, self._caller)
        frame = conversation_frames.read_frame(event, task_id=self._task_id)
        frame_id = frame.get("id")
        if frame["type"] == "ping":
            return conversation_frames.pong(frame_id)
        if frame["type"] == "auth":
            raise InvalidInput("type: this connection is authenticated already.")
        deed = partial(self._do, frame["message"], frame_id)
        try:
            return conversation_frames.done(frame_id, await in_thread(deed))
        except Error:
            raise NotReady("The database did not take the message.") from None

    def _do(self, message: Mapping[str, Any], frame_id: str | None) -> dict[str, Any]:
        caller = self._caller
        if not still_may(caller):
            raise NotAuthenticated("The token was revoked.")
        if message["type"] == "user_message":
            return services.add_message(
                principal=caller,
                task_id=self._task_id,
                content=message["content"],
                on_busy=message.get("onBusy", "queue"),
                output_schema=message.get("outputSchema"),
                key=frame_id,
            )
        deeds = {
            "takeover": services.take_over_task,
            "resume": services.resume_task,
            "stop": services.stop_task,
        }
        return deeds[message["type"]](principal=caller, task_id=self._task_id)
