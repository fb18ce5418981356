"""The body of a request on its way in: bounded in size and in time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from runners.docker_runner.envelope import MAX_BYTES
from runners.docker_runner.refusals import BodyTooLarge, UnreadBody

BODY_S = 30.0
DISCARD_S = 5.0
DISCARD_BYTES = 4 * MAX_BYTES
Receive = Callable[[], Awaitable[Mapping[str, Any]]]


class Incoming:
    """A request's body, read once or thrown away."""

    def __init__(self, headers: Mapping[bytes, bytes], receive: Receive) -> None:
        self.receive = receive
        self._told = headers.get(b"content-length", b"")
        self._is_over = False

    async def read(self) -> bytes:
        """Return the whole body.

        Raises:
            BodyTooLarge: It has, or will have, more than MAX_BYTES.
            UnreadBody: It does not come in time, or its sender hangs up.
        """
        if self._told.isdigit() and int(self._told) > MAX_BYTES:
            raise _too_large()
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_S):
                while not self._is_over:
                    body += await self._next()
                    if len(body) > MAX_BYTES:
                        raise _too_large()
        except TimeoutError:
            raise UnreadBody(f"The body did not come within {BODY_S:.0f} s.") from None
        return bytes(body)

    async def discard(self) -> None:
        """Take what is still coming, as far as there is patience for it."""
        left = DISCARD_BYTES
        with contextlib.suppress(TimeoutError, UnreadBody):
            async with asyncio.timeout(DISCARD_S):
                while not self._is_over and left > 0:
                    left -= len(await self._next())

    async def _next(self) -> bytes:
        message = await self.receive()
        self._is_over = not message.get("more_body")
        if message["type"] == "http.disconnect":
            raise UnreadBody("The body is not whole.")
        data: bytes = message.get("body", b"")
        return data


def _too_large() -> BodyTooLarge:
    return BodyTooLarge(f"The body has more than {MAX_BYTES} bytes.")
