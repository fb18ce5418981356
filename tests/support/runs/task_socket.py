"""A WebSocket client of a task, as a web page is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.support.rest.rest import bearer

TIMEOUT_S = 30.0
Frame = dict[str, Any]


class TaskSocket:
    """An open WebSocket connection."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def send(self, frame: Any) -> None:
        """Send a frame; text is sent unchanged."""
        self.connection.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))

    def receive(self) -> Frame:
        """Return the next frame."""
        frame: Frame = json.loads(self.connection.recv(TIMEOUT_S))
        return frame

    def receive_until(self, is_wanted: Callable[[Frame], object]) -> list[Frame]:
        """Return the frames up to and including the first that satisfies the condition."""
        messages = [self.receive()]
        while not is_wanted(messages[-1]):
            messages.append(self.receive())
        return messages

    def request(self, frame: Any) -> Frame:
        """Send a frame and return the answer to it; skip other frames."""
        self.send(frame)
        return self.receive_until(lambda messages: messages["type"] in ("ack", "pong"))[-1]

    def send_message(self, content: str, frame_id: str = "m1", **more: Any) -> Frame:
        """Send a user message and return the answer."""
        message = {"type": "user_message", "content": content, **more}
        return self.request(
            {"v": 1, "type": "frontend_message", "id": frame_id, "message": message}
        )

    def remaining_frames(self) -> Iterator[Frame]:
        """Yield the frames until the connection closes."""
        with suppress(ConnectionClosed):
            while True:
                yield self.receive()

    def close_code(self) -> int:
        """Return the code with which the server closes the connection."""
        for _ in self.remaining_frames():
            pass
        return self.connection.close_code or 1006


@contextmanager
def open_task_socket(
    web: str,
    task_id: str,
    *,
    token: str | None = None,
    query: str = "",
    headers: Mapping[str, str] = MappingProxyType({}),
    **options: Any,
) -> Iterator[TaskSocket]:
    """Open a task's WebSocket."""
    address = web.replace("http", "ws", 1) + f"/ws/tasks/{task_id}{query}"
    credential = bearer(token) if token else {}
    with connect(
        address, additional_headers={**credential, **headers}, open_timeout=TIMEOUT_S, **options
    ) as connection:
        yield TaskSocket(connection)


def is_event(type_: str) -> Callable[[Frame], bool]:
    """Return a predicate: whether a frame carries an event of this type."""
    return lambda frame: frame["type"] == "frontend_event" and frame["event"]["type"] == type_
