"""The WebSocket of a task's live page, `/ws/tasks/{taskId}/live`: pictures there, and back what a
person does who has the page. Who may open it is as for the task's own WebSocket.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from django.db import Error

from decisions.errors import Conflict, NotAuthenticated, NotReady, Refused
from decisions.identity.principals import Principal, still_may
from decisions.infra.threads import in_thread
from runs.conversations.selectors import is_taken_over
from runs.live.no_page import no_page_reason
from runs.websockets.connection import (
    CHECK_S,
    GOING_AWAY,
    CloseSocket,
    Receive,
    Send,
    TaskSocket,
    run_until_first,
    serve_socket,
)
from runs.websockets.conversation import PATH
from runs.websockets.conversation_frames import done, id_of, pong, refused
from runs.websockets.live_frames import read_frame, state
from runs.websockets.live_viewer import PageSubscription, watch

END = "/live"
PATIENCE_S = 5.0  # without a word of a worker there is no page to be seen
PER_SECOND = 60  # frames of input; whoever sends more is read no faster
VIEWERS_MAX = 32  # of one process
TOO_MANY = 4429
_viewers: set[int] = set()


def is_live_path(path: str) -> bool:
    """Tell whether an address is that of a live page."""
    return path.startswith(PATH) and path.endswith(END)


async def serve_live(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Serve one connection to `/ws/tasks/{taskId}/live`."""
    task_id = str(scope["path"]).removeprefix(PATH).removesuffix(END)
    await serve_socket(scope, receive, send, task_id=task_id, serve=_serve)


async def _serve(line: TaskSocket, caller: Principal) -> None:
    from redis import RedisError

    await line.task(caller)  # whether it may be looked at
    if len(_viewers) >= VIEWERS_MAX:
        raise CloseSocket(TOO_MANY, "too many look at live pages here")
    _viewers.add(id(line))
    try:
        async with watch(line.task_id) as (looking, hearing):
            viewer = LivePageSocket(line, caller, looking)
            await run_until_first(
                viewer.tell(), viewer.hear(), viewer.look_after(), looking.keep_saying(), hearing
            )
    except (RedisError, OSError):
        raise CloseSocket(GOING_AWAY, "live pages are away; come back") from None
    finally:
        _viewers.discard(id(line))


class LivePageSocket:
    """Somebody who looks."""

    def __init__(self, line: TaskSocket, caller: Principal, looking: PageSubscription) -> None:
        self._line, self._caller, self._looking = line, caller, looking
        self._told_absence = ""

    async def tell(self) -> None:
        """Send what the worker tells, a picture after the other as the line takes them."""
        async for told in self._looking.told:
            if told.get("page") is False:
                await self._tell_absence()
                continue
            self._told_absence = ""
            await self._line.put(state(told))

    async def look_after(self) -> None:
        """Say why there is nothing to see, and ask now and then whether this one still may look."""
        began, checked = time.monotonic(), time.monotonic()
        while True:
            await asyncio.sleep(1.0)
            now = time.monotonic()
            if now - max(began, self._looking.heard_at or 0.0) > PATIENCE_S:
                await self._tell_absence()
            if now - checked > CHECK_S:
                checked = now
                if not await in_thread(still_may, self._caller):
                    raise CloseSocket(4401, "the token was revoked")

    async def _tell_absence(self) -> None:
        why = await in_thread(no_page_reason, self._line.task_id)
        if why != self._told_absence:
            self._told_absence = why
            await self._line.put(state({"type": "live_state", "page": False, "message": why}))

    async def hear(self) -> None:
        """Pass on what the person does; a frame is answered where it has an id, or is refused."""
        while True:
            event = await self._line.next()
            began = time.monotonic()
            try:
                answer = await self._answer(event)
            except Refused as refusal:
                answer = refused(id_of(event), refusal)
            if answer is not None:
                await self._line.put(answer)
            await asyncio.sleep(max(0.0, began + 1 / PER_SECOND - time.monotonic()))

    async def _answer(self, event: Mapping[str, Any]) -> dict[str, Any] | None:
        frame = read_frame(event)
        frame_id = frame.get("id")
        if frame["type"] == "ping":
            return pong(frame_id)
        try:
            await in_thread(self._check_may_act)
        except Error:
            raise NotReady("The database did not answer.") from None
        told = {"kind": "input", "by": self._caller.id, "events": frame["events"]}
        await self._looking.say(told)
        return None if frame_id is None else done(frame_id, {"taskId": self._line.task_id})

    def _check_may_act(self) -> None:
        """Refuse who has no right to, and what comes while the agent has the page.

        Raises:
            Forbidden, NotAuthenticated, Conflict: As it says.
        """
        self._caller.require("tasks:write")
        if not still_may(self._caller):
            raise NotAuthenticated("The token was revoked.")
        if not is_taken_over(self._line.task_id):
            raise Conflict("The agent has the page: take it over first.")
