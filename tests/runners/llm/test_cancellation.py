"""A model request can be cancelled at any moment: it ends at once and its connection closes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from runners.llm.base import Delta, LlmSettings, Message
from runners.llm.gateway import Gateway
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Turn

HELLO = [Message("user", "Hello")]
BUSY_FOR_AN_HOUR = Turn(status=429, headers={"Retry-After": "3600"})


@asynccontextmanager
async def silent_server() -> AsyncIterator[tuple[str, asyncio.Event, asyncio.Event]]:
    """Yield the address of a server that never responds, and events for request and disconnect."""
    request_received, disconnected = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        request_received.set()
        while await reader.read(4096):
            pass
        disconnected.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield (
            f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}",
            request_received,
            disconnected,
        )


async def cancel_after(gateway: Gateway, wait_for_moment: Callable[[], Any]) -> float:
    """Start a request, cancel it after a moment, and return the seconds until it ended."""

    async def stream() -> None:
        async for _ in gateway.stream_chat(messages=HELLO, tools=(), timeout_ms=7_200_000):
            pass

    stream_task = asyncio.ensure_future(stream())
    await wait_for_moment()
    started = time.monotonic()
    stream_task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stream_task
    return time.monotonic() - started


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_cancel_before_the_first_byte_ends_at_once(provider: Any) -> None:
    async def check() -> None:
        async with silent_server() as (address, request_received, disconnected):
            gateway = Gateway(LlmSettings(provider, "m", address, timeout_ms=7_200_000))
            assert (
                await cancel_after(gateway, request_received.wait) < 60
            )  # the timeout is two hours
            await asyncio.wait_for(disconnected.wait(), 60)
            await gateway.close()

    asyncio.run(check())


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_cancel_before_the_response_closes_the_connection(
    model: ModelServer, provider: Any
) -> None:
    disconnected = threading.Event()
    model.answer = lambda _: (
        Turn("Hello", stall_at=10) if disconnected.wait(60) else Turn(status=500)
    )

    async def check() -> None:
        gateway = Gateway(LlmSettings(provider, "m", f"{model.url}/v1"))

        async def request_received() -> None:
            while not model.requests:
                await asyncio.sleep(0.01)

        assert await cancel_after(gateway, request_received) < 60  # the timeout is two hours
        disconnected.set()
        assert await asyncio.to_thread(model.requests[0].disconnected.wait, 60)
        await gateway.close()

    asyncio.run(check())


def test_a_cancel_during_the_retry_delay_ends_at_once(
    model: ModelServer,
) -> None:
    model.script = [BUSY_FOR_AN_HOUR, Turn("never asked for")]

    async def check() -> None:
        gateway = Gateway(LlmSettings("openai", "m", f"{model.url}/v1", timeout_ms=7_200_000))

        async def answered() -> None:
            await asyncio.to_thread(model.wait_for, 1)
            await asyncio.to_thread(model.requests[0].answered.wait, 60)
            await asyncio.sleep(0.2)  # cancel shortly before or during the retry delay

        assert await cancel_after(gateway, answered) < 60  # the retry delay is an hour
        await gateway.close()

    asyncio.run(check())
    assert len(model.requests) == 1


def test_closing_a_slow_stream_ends_at_once(model: ModelServer) -> None:
    model.script = [Turn("x" * 10_000, piece=1, pause_s=0.3)]

    async def check() -> None:
        gateway = Gateway(LlmSettings("openai", "m", f"{model.url}/v1", timeout_ms=7_200_000))
        chat = gateway.stream_chat(messages=HELLO, tools=(), timeout_ms=7_200_000)
        assert isinstance(await anext(chat), Delta)
        started = time.monotonic()
        await chat.aclose()
        assert time.monotonic() - started < 60  # the stream takes fifty minutes
        assert await asyncio.to_thread(model.requests[0].disconnected.wait, 60)
        await gateway.close()

    asyncio.run(check())
