"""The WebSocket of a task, `/ws/tasks/{taskId}`: sends the task's log as it is written, and carries
out the client's frames.

An invalid or refused frame is answered with an error; the connection stays open. It is closed only
when the client may not read the task, sends no credential, or does not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.db import Error

from decisions.foundation.errors import InvalidInput, NotAuthenticated, NotReady, Refused
from decisions.foundation.infra.threads import in_thread
from decisions.identity.principals import Principal, is_credential_active
from decisions.rest_base.drf import throttle_principal
from runs.conversations import services
from runs.conversations.errors import TaskNotFound
from runs.conversations.selectors import list_task_events
from runs.streaming import credential_checks
from runs.streaming.hub import get_hub
from runs.streaming.sse import PAGE
from runs.streaming.subscriber import Subscriber
from runs.websockets import conversation_frames
from runs.websockets.browser_states import follow_browser
from runs.websockets.connection import (
    CREDENTIAL_ENDED,
    GOING_AWAY,
    CloseSocket,
    Message,
    Receive,
    Send,
    TaskSocket,
    run_until_first,
    serve_socket,
)

PATH = "/ws/tasks/"


async def serve_task(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Serve one connection to `/ws/tasks/{taskId}`."""
    task_id = str(scope["path"]).removeprefix(PATH)
    await serve_socket(scope, receive, send, task_id=task_id, serve=_serve)


async def _serve(socket: TaskSocket, caller: Principal) -> None:
    await ConversationSocket(socket, caller).serve()


class ConversationSocket:
    """One authenticated connection. The client's frames are answered one after another."""

    def __init__(self, socket: TaskSocket, caller: Principal) -> None:
        self._socket, self._caller = socket, caller
        self._task_id = socket.task_id
        self._after = socket.after

    async def serve(self) -> None:
        """Send a snapshot of the task and then its log, and carry out frames, until the client
        disconnects.

        Raises:
            CloseSocket: The connection is to be closed.
            ClientDisconnected: The client closed it.
        """
        if self._after is None:
            self._after = self._after_in_query()
        async with get_hub().subscribe(self._task_id) as (_, subscriber):
            await self._send_snapshot()
            work = [self._send_log(subscriber), self._receive(), self._send_browser_states()]
            await run_until_first(*work)

    def _after_in_query(self) -> int | None:
        text = self._socket.request.GET.get("after", "")
        if text and not (text.isascii() and text.isdigit() and len(text) <= 15):
            raise CloseSocket(4400, "after: must be the seq of an event")
        return int(text) if text else None

    # --- the log ----------------------------------------------------------------------------------

    async def _send_snapshot(self) -> None:
        task = await self._socket.get_task(self._caller)
        if self._after is None:
            self._after = task["lastSeq"]
        await self._socket.send(conversation_frames.snapshot(task))

    async def _send_browser_states(self) -> None:
        async def send(state: Mapping[str, Any]) -> None:
            await self._socket.send(conversation_frames.browser_state(self._task_id, state))

        await follow_browser(self._caller, self._task_id, send)

    async def _send_log(self, subscriber: Subscriber) -> None:
        """Send every event after the client's seq, as long as its token is valid."""
        subscriber.wake_every(credential_checks.CHECK_S / 2)
        after = self._after or 0
        while not subscriber.is_closed:
            if not await credential_checks.is_still_active(self._caller):
                raise CloseSocket(4401, CREDENTIAL_ENDED)
            if subscriber.is_behind:
                page, log_seq = await in_thread(self._read_page, after)
                after = await self._send_events(page["events"], after)
                if len(page["events"]) < PAGE:
                    subscriber.mark_read(after, log_seq=log_seq)
            elif batches := subscriber.take():
                for batch in batches:
                    after = await self._send_events(batch.events, after)
            else:
                await subscriber.wait()
        raise CloseSocket(GOING_AWAY, "the server is shutting down; reconnect")

    def _read_page(self, after: int) -> tuple[dict[str, Any], int]:
        try:
            return list_task_events(
                principal=self._caller, run_id=self._task_id, after=after, limit=PAGE
            )
        except TaskNotFound as refusal:
            raise CloseSocket(4404, refusal.message) from None

    async def _send_events(self, events: Any, after: int) -> int:
        for event in events:
            await self._socket.send(conversation_frames.event_frame(self._task_id, event))
            after = event["seq"]
        return after

    # --- the client's frames ----------------------------------------------------------------------

    async def _receive(self) -> None:
        while True:
            event = await self._socket.receive()
            try:
                answer = await self._answer(event)
            except Refused as refusal:
                answer = conversation_frames.error_ack(conversation_frames.id_of(event), refusal)
            await self._socket.send(answer)

    async def _answer(self, event: Message) -> dict[str, Any]:
        """Carry out a frame and return the answer to it.

        Raises:
            Refused: The frame is invalid, or what it requests is refused.
        """
        await in_thread(throttle_principal, self._caller)
        frame = conversation_frames.read_frame(event, task_id=self._task_id)
        frame_id = frame.get("id")
        if frame["type"] == "ping":
            return conversation_frames.pong(frame_id)
        if frame["type"] == "auth":
            raise InvalidInput("type: this connection is authenticated already.")
        carry_out = partial(self._carry_out, frame["message"], frame_id)
        try:
            return conversation_frames.ack(frame_id, await in_thread(carry_out))
        except Error:
            raise NotReady("The database did not accept the message.") from None

    def _carry_out(self, message: Mapping[str, Any], frame_id: str | None) -> dict[str, Any]:
        caller = self._caller
        if not is_credential_active(caller):
            raise NotAuthenticated(f"{CREDENTIAL_ENDED.capitalize()}.")
        if message["type"] == "user_message":
            return services.add_message(
                principal=caller,
                task_id=self._task_id,
                content=message["content"],
                on_busy=message.get("onBusy", "queue"),
                output_schema=message.get("outputSchema"),
                key=frame_id,
            )
        operations = {
            "takeover": services.take_over_task,
            "resume": services.resume_task,
            "stop": services.stop_task,
        }
        return operations[message["type"]](principal=caller, task_id=self._task_id)
