"""The response of S3 §4.2, written while the tool executes: updates first, the result last."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from runners.docker_runner.errors import RunnerDefect

JOIN_S = 0.1  # the first update is sent at once; output within this time is joined
UPDATE_CHARS = 16 * 1024
QUIET_S = 10.0  # after which a newline keeps the connection alive and detects a lost client
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
_HEAD = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json"), (b"cache-control", b"no-store")],
}


class OutputBuffer:
    """Output of a tool that was not sent yet."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self.has_output = asyncio.Event()

    def append(self, text: str) -> None:
        """Add output to send."""
        self._waiting.append(text)
        self.has_output.set()

    def take(self) -> list[str]:
        """Return and clear the output, split into pieces of at most UPDATE_CHARS."""
        text = "".join(self._waiting)
        self._waiting.clear()
        self.has_output.clear()
        return [text[at : at + UPDATE_CHARS] for at in range(0, len(text), UPDATE_CHARS)]


class ResponseStream:
    """The body of one response; the headers are sent with the first update or the result."""

    def __init__(self, send: Send) -> None:
        self._send, self._is_started, self._updates = send, False, 0

    async def write(self, output: OutputBuffer, working: asyncio.Task[Mapping[str, Any]]) -> None:
        """Send the output while the tool executes, then its result."""
        while not working.done():
            await _wait_for_output(output, working)
            texts = output.take()
            await self._send_updates(texts)
            if not texts and not working.done():
                await self._write(b"\n")
            await asyncio.wait({working}, timeout=JOIN_S)
        await self._send_updates(output.take())
        result = working.result()
        if is_defect(result) and not self._is_started:
            await send_json(self._send, 500, result)
        else:
            await self._write(b'],"result":' + orjson.dumps(result) + b"}", more=False)

    async def _send_updates(self, texts: list[str]) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for text in texts:
            before = b"," if self._updates else b""
            self._updates += 1
            await self._write(before + orjson.dumps({"delta": text, "at": at}))

    async def _write(self, data: bytes, *, more: bool = True) -> None:
        if not self._is_started:
            self._is_started = True
            await self._send(_HEAD)
            data = b'{"updates":[' + data
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


def is_defect(result: Mapping[str, Any]) -> bool:
    """Return whether a call failed because of a defect of the runner."""
    return not result["ok"] and result["error"]["code"] == RunnerDefect.code


async def send_json(
    send: Send, status: int, value: Mapping[str, Any], more: Mapping[str, str] | None = None
) -> None:
    """Send a whole response at once."""
    body = orjson.dumps(value)
    headers = {"content-type": "application/json", "content-length": str(len(body)), **(more or {})}
    encoded = [(name.encode(), text.encode()) for name, text in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


async def _wait_for_output(output: OutputBuffer, working: asyncio.Task[Mapping[str, Any]]) -> None:
    waiting = asyncio.create_task(output.has_output.wait())
    try:
        await asyncio.wait({waiting, working}, timeout=QUIET_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
