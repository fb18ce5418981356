"""A small client of the DevTools protocol, which attaches to one target at a time.

Playwright attaches to every page and answers its dialogs, which is what the extension has to do.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import urllib.request
from typing import Any

from websockets.sync.client import ClientConnection, connect

MAX_BYTES = 64 * 1024 * 1024


def targets(port: int) -> list[dict[str, Any]]:
    """Return the targets of the browser that listens on this port."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=10) as response:
        found: list[dict[str, Any]] = json.load(response)
    return found


class DevTools:
    """A connection to one target, or to the browser itself."""

    def __init__(self, address: str) -> None:
        self._stack = contextlib.ExitStack()
        opening = connect(address, max_size=MAX_BYTES, ping_interval=None)
        self._socket: ClientConnection = self._stack.enter_context(opening)
        self._ids = itertools.count(1)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=30))
            if message.get("id") == number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; a promise is awaited."""
        answer = self.send(
            "Runtime.evaluate",
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def close(self) -> None:
        """Close the connection."""
        self._stack.close()
