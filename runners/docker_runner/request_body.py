"""The body of a request, read with limits of size and time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from runners.docker_runner.envelope import MAX_BYTES
from runners.docker_runner.refusals import BodyNotRead, RunnerBodyTooLarge

BODY_S = 30.0
DISCARD_S = 5.0
DISCARD_BYTES = 4 * MAX_BYTES
Receive = Callable[[], Awaitable[Mapping[str, Any]]]


class RequestBody:
    """The body of a request; it is read once or discarded."""

    def __init__(self, headers: Mapping[bytes, bytes], receive: Receive) -> None:
        self.receive = receive
        self._declared_length = headers.get(b"content-length", b"")
        self._is_complete = False

    async def read(self) -> bytes:
        """Return the whole body.

        Raises:
            RunnerBodyTooLarge: It has, or declares, more than MAX_BYTES.
            BodyNotRead: It does not arrive in time, or the client disconnects.
        """
        if self._declared_length.isdigit() and int(self._declared_length) > MAX_BYTES:
            raise _too_large()
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_S):
                while not self._is_complete:
                    body += await self._next()
                    if len(body) > MAX_BYTES:
                        raise _too_large()
        except TimeoutError:
            raise BodyNotRead(f"The body did not arrive within {BODY_S:.0f} s.") from None
        return bytes(body)

    async def discard(self) -> None:
        """Read and drop the rest of the body, up to DISCARD_BYTES and DISCARD_S."""
        left = DISCARD_BYTES
        with contextlib.suppress(TimeoutError, BodyNotRead):
            async with asyncio.timeout(DISCARD_S):
                while not self._is_complete and left > 0:
                    left -= len(await self._next())

    async def _next(self) -> bytes:
        message = await self.receive()
        self._is_complete = not message.get("more_body")
        if message["type"] == "http.disconnect":
            raise BodyNotRead("The body is incomplete.")
        data: bytes = message.get("body", b"")
        return data


def _too_large() -> RunnerBodyTooLarge:
    return RunnerBodyTooLarge(f"The body has more than {MAX_BYTES} bytes.")
