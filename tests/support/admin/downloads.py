"""The content of downloads from the admin."""

from __future__ import annotations

import asyncio
from typing import Any


def downloaded_bytes(response: Any) -> bytes:
    """Return what a streamed response sends, as the ASGI server reads it."""

    async def read() -> bytes:
        return b"".join([part async for part in response.streaming_content])

    try:
        return asyncio.run(read())
    finally:
        response.close()
