"""The answer of S3 §4.2, written while the work goes on: updates first, the result last."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from runners.docker_runner.errors import RunnerBroken

JOIN_S = 0.1  # the first update goes at once; what comes this soon after another is joined
UPDATE_CHARS = 16 * 1024
QUIET_S = 10.0  # after which a blank tells proxies, and us, that the other side is still there
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
_HEAD = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json"), (b"cache-control", b"no-store")],
}


class Progress:
    """What a tool has said and nobody was told yet."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self.heard = asyncio.Event()

    def say(self, text: str) -> None:
        """Note something to tell the caller."""
        self._waiting.append(text)
        self.heard.set()

    def take(self) -> list[str]:
        """Return what is to be told now, in pieces of a fair size."""
        text = "".join(self._waiting)
        self._waiting.clear()
        self.heard.clear()
        return [text[at : at + UPDATE_CHARS] for at in range(0, len(text), UPDATE_CHARS)]


class ProgressiveAnswer:
    """The body of one answer; nothing is sent before there is something to tell."""

    def __init__(self, send: Send) -> None:
        self._send, self._has_begun, self._updates = send, False, 0

    async def write(self, progress: Progress, working: asyncio.Task[Mapping[str, Any]]) -> None:
        """Tell what the work says as it says it, and in the end its result."""
        while not working.done():
            await _until_heard(progress, working)
            texts = progress.take()
            await self._tell(texts)
            if not texts and not working.done():
                await self._write(b"\n")
            await asyncio.wait({working}, timeout=JOIN_S)
        await self._tell(progress.take())
        result = working.result()
        if is_broken(result) and not self._has_begun:
            await send_json(self._send, 500, result)
        else:
            await self._write(b'],"result":' + orjson.dumps(result) + b"}", more=False)

    async def _tell(self, texts: list[str]) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for text in texts:
            before = b"," if self._updates else b""
            self._updates += 1
            await self._write(before + orjson.dumps({"delta": text, "at": at}))

    async def _write(self, data: bytes, *, more: bool = True) -> None:
        if not self._has_begun:
            self._has_begun = True
            await self._send(_HEAD)
            data = b'{"updates":[' + data
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


def is_broken(result: Mapping[str, Any]) -> bool:
    """Tell whether a call failed by a defect of the runner."""
    return not result["ok"] and result["error"]["code"] == RunnerBroken.code


async def send_json(
    send: Send, status: int, value: Mapping[str, Any], more: Mapping[str, str] | None = None
) -> None:
    """Send a whole answer at once."""
    body = orjson.dumps(value)
    headers = {"content-type": "application/json", "content-length": str(len(body)), **(more or {})}
    told = [(name.encode(), text.encode()) for name, text in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": body})


async def _until_heard(progress: Progress, working: asyncio.Task[Mapping[str, Any]]) -> None:
    hearing = asyncio.create_task(progress.heard.wait())
    try:
        await asyncio.wait({hearing, working}, timeout=QUIET_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        hearing.cancel()
