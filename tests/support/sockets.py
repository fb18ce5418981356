"""A WebSocket client of a task, as a web page is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.support.rest import bearer

TIMEOUT_S = 30.0
Frame = dict[str, Any]


class TaskSocket:
    """An open WebSocket connection."""

    def __init__(self, line: ClientConnection) -> None:
        self.line = line

    def put(self, frame: Any) -> None:
        """Send a frame; text is sent unchanged."""
        self.line.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))

    def get(self) -> Frame:
        """Return the next frame."""
        frame: Frame = json.loads(self.line.recv(TIMEOUT_S))
        return frame

    def until(self, is_it: Callable[[Frame], object]) -> list[Frame]:
        """Return the frames up to and including the first that satisfies the condition."""
        got = [self.get()]
        while not is_it(got[-1]):
            got.append(self.get())
        return got

    def ask(self, frame: Any) -> Frame:
        """Send a frame and return the answer to it; skip other frames."""
        self.put(frame)
        return self.until(lambda got: got["type"] in ("ack", "pong"))[-1]

    def say(self, content: str, frame_id: str = "m1", **more: Any) -> Frame:
        """Send a user message and return the answer."""
        message = {"type": "user_message", "content": content, **more}
        return self.ask({"v": 1, "type": "frontend_message", "id": frame_id, "message": message})

    def rest(self) -> Iterator[Frame]:
        """Yield the frames until the connection closes."""
        with suppress(ConnectionClosed):
            while True:
                yield self.get()

    def closed(self) -> int:
        """Return the code with which the server closes the connection."""
        for _ in self.rest():
            pass
        return self.line.close_code or 1006


@contextmanager
def open_task_socket(
    web: str, task_id: str, *, token: str | None = None, query: str = "", **options: Any
) -> Iterator[TaskSocket]:
    """Open a task's WebSocket."""
    address = web.replace("http", "ws", 1) + f"/ws/tasks/{task_id}{query}"
    headers = bearer(token) if token else {}
    with connect(address, additional_headers=headers, open_timeout=TIMEOUT_S, **options) as line:
        yield TaskSocket(line)


def is_event(type_: str) -> Callable[[Frame], bool]:
    """Return a predicate: whether a frame carries an event of this type."""
    return lambda frame: frame["type"] == "frontend_event" and frame["event"]["type"] == type_
