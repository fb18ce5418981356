"""The floor of an event stream: Django and uvicorn, one Redis subscription per process, a queue per
listener; each published message is relayed unchanged. No rows, no access checks, no resumption.

`python -m tests.benchmarks.floor_stream PORT` serves /stream; REDIS_URL and CHANNEL are in the
environment.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator

import redis.asyncio
import uvicorn
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpRequest, StreamingHttpResponse
from django.urls import path

settings.configure(
    SECRET_KEY="floor", ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, MIDDLEWARE=[], USE_TZ=True
)
_queues: set[asyncio.Queue[bytes]] = set()
_pumps: list[asyncio.Task[None]] = []


async def pump() -> None:
    """Put every message into the queue of every listener."""
    client = redis.asyncio.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None)
    channel = client.pubsub()
    await channel.subscribe(os.environ["CHANNEL"])
    async for message in channel.listen():
        if message["type"] == "message":
            frame = b"data: " + message["data"] + b"\n\n"
            for queue in _queues:
                queue.put_nowait(frame)


async def stream(request: HttpRequest) -> StreamingHttpResponse:
    """Stream the messages that are published from now on."""
    if not _pumps:
        _pumps.append(asyncio.create_task(pump()))
    queue: asyncio.Queue[bytes] = asyncio.Queue(256)
    _queues.add(queue)

    async def lines() -> AsyncIterator[bytes]:
        try:
            yield b"id: 1\n\n"
            while True:
                yield await queue.get()
        finally:
            _queues.discard(queue)

    return StreamingHttpResponse(lines(), content_type="text/event-stream")


urlpatterns = [path("stream", stream)]

if __name__ == "__main__":
    uvicorn.run(
        get_asgi_application(),
        port=int(sys.argv[1]),
        loop="uvloop",
        log_level="warning",
        access_log=False,
        backlog=4096,
    )
