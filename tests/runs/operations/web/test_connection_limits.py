"""Slow and many clients: time limits of heads, bodies and unread responses; connection limits."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from ipaddress import ip_network
from typing import Any

import pytest
from websockets.asyncio.client import connect

from runs.operations.web import connection_limits
from runs.operations.web.connection_limits import ConnectionLimits, OpenConnections
from tests.support.rest.asgi_server import AsgiServer, echo_size, serve_asgi

SHORT_S = 0.3
QUICK = ConnectionLimits(head_s=SHORT_S, body_s=SHORT_S, unread_s=SHORT_S, idle_s=1)
POST = b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[Any]]


def exchange(talk: Talk, *, app: Any = echo_size, limits: ConnectionLimits = QUICK) -> Any:
    """Open a connection to a new server and return what `talk` returns."""

    async def run() -> Any:
        async with serve_asgi(app, limits) as server:
            return await on_connection(server, talk)

    return asyncio.run(run())


async def on_connection(server: AsgiServer, talk: Talk) -> Any:
    reader, writer = await asyncio.open_connection(*server.address)
    try:
        return await asyncio.wait_for(talk(reader, writer), 10)
    finally:
        writer.close()


def assert_refused(answer: bytes, status: int) -> None:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), answer
    assert b"connection: close" in head
    assert set(json.loads(body)) == {"errorCode", "message", "details", "retryable", "recovery"}


def test_an_unfinished_head_is_refused_in_time() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n")
        return await reader.read()

    assert_refused(exchange(talk), 408)


def test_a_head_that_arrives_byte_by_byte_has_no_more_time() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> float:
        started = time.monotonic()
        answer = asyncio.ensure_future(reader.read())
        while not answer.done():
            writer.write(b"GET / HTTP/1.1\r\na: " if time.monotonic() - started < 0.01 else b"a")
            await asyncio.sleep(0.05)
        return time.monotonic() - started

    assert exchange(talk) < 3 * SHORT_S


def test_a_connection_without_a_request_is_closed_without_a_response() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        return await reader.read()

    assert exchange(talk) == b""


def test_an_idle_connection_between_requests_is_closed() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        return await reader.read()

    assert exchange(talk).count(b"HTTP/1.1 ") == 1


def test_the_head_of_a_later_request_has_the_same_limit() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        first = await reader.readuntil(b"0")
        writer.write(b"GET / HTTP")
        assert first
        return await reader.read()

    assert b"HTTP/1.1 408 " in exchange(talk)


def test_an_unfinished_body_is_refused_and_the_application_learns_it() -> None:
    seen = []

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        while (message := await receive())["type"] == "http.request" and message["more_body"]:
            pass
        seen.append(message["type"])

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(POST % 1000 + b"some")
        return await reader.read()

    assert_refused(exchange(talk, app=app), 408)
    assert seen == ["http.disconnect"]


@pytest.mark.parametrize("trailer", [b"a: b\r\n", b"a"], ids=["many", "one"])
def test_endless_trailers_are_refused_before_they_are_complete(trailer: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(
            b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\na: "
        )
        for _ in range(20):
            writer.write(trailer * (20_000 // len(trailer)))
            await writer.drain()
            await asyncio.sleep(0)
        return await reader.read()

    slow = ConnectionLimits(head_s=8, body_s=8, unread_s=8, idle_s=8)
    assert_refused(exchange(talk, limits=slow), 431)


def test_a_body_that_arrives_fast_enough_has_more_time() -> None:
    limits = ConnectionLimits(body_s=SHORT_S, body_bytes_per_s=100)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(POST % 200)
        for _ in range(10):
            await asyncio.sleep(0.1)
            writer.write(b"b" * 20)
        return await reader.read()

    assert exchange(talk, limits=limits).endswith(b"200")


def test_time_in_which_the_application_does_not_read_does_not_count() -> None:
    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await asyncio.sleep(3 * SHORT_S)
        await echo_size(scope, receive, send)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(POST % 3_000_000 + b"b" * 3_000_000)
        return await reader.read()

    assert exchange(talk, app=app).endswith(b"3000000")


def test_after_the_application_did_not_read_the_client_has_the_whole_time_again() -> None:
    """Also if the pause ends shortly before the limit is checked again."""
    limits = ConnectionLimits(body_s=0.8, body_bytes_per_s=1_000_000_000)
    reads = asyncio.Event()

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await asyncio.sleep(1.9 * limits.body_s)
        reads.set()
        await echo_size(scope, receive, send)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(POST % 300_000 + b"b" * 200_000)
        await reads.wait()
        await asyncio.sleep(0.2 * limits.body_s)
        writer.write(b"b" * 100_000)
        return await reader.read()

    assert exchange(talk, app=app, limits=limits).endswith(b"300000")


def test_a_long_response_is_not_limited() -> None:
    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(5):
            await asyncio.sleep(SHORT_S / 2)
            await send({"type": "http.response.body", "body": b"event ", "more_body": True})
        await send({"type": "http.response.body", "body": b"end"})

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        return await reader.read()

    answer = exchange(talk, app=app)
    assert answer.count(b"event ") == 5
    assert b"end" in answer


def test_a_client_that_does_not_read_a_response_is_disconnected() -> None:
    ended = []

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(100):
            await send({"type": "http.response.body", "body": b"x" * 2**20, "more_body": True})
            if (await asyncio.wait_for(is_disconnected(receive), 5)) is True:
                break
        ended.append(time.monotonic())

    async def is_disconnected(receive: Any) -> bool:
        try:
            async with asyncio.timeout(0.001):
                return bool((await receive())["type"] == "http.disconnect")
        except TimeoutError:
            return False

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
        while not ended:
            await asyncio.sleep(0.05)

    exchange(talk, app=app)
    assert ended


def test_a_websocket_is_not_limited_and_counts_as_a_connection() -> None:
    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        assert (await receive())["type"] == "websocket.connect"
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"]})

    async def run() -> None:
        async with serve_asgi(app, QUICK) as server:
            host, port = server.address
            async with connect(f"ws://{host}:{port}/") as socket:
                await asyncio.sleep(2 * SHORT_S)
                await socket.send("still here")
                assert await socket.recv() == "still here"
                assert server.open_connections.total == 1
            while server.open_connections.total:
                await asyncio.sleep(0.01)
            assert not server.open_connections.peers

    asyncio.run(asyncio.wait_for(run(), 10))


@pytest.mark.parametrize(
    ("limits", "status"),
    [(ConnectionLimits(per_peer=3), 429), (ConnectionLimits(connections=3), 503)],
)
def test_connections_over_a_limit_are_refused_until_others_close(
    limits: ConnectionLimits, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_limits, "is_loopback", lambda address: False)

    async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        return await reader.read()

    async def run() -> None:
        async with serve_asgi(echo_size, limits) as server:
            opened = [await asyncio.open_connection(*server.address) for _ in range(3)]
            while server.open_connections.total < 3:
                await asyncio.sleep(0.01)
            assert_refused(await on_connection(server, read), status)
            for _, writer in opened:
                writer.close()
            while server.open_connections.total:
                await asyncio.sleep(0.01)

            async def get(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
                writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
                return await reader.read()

            assert (await on_connection(server, get)).startswith(b"HTTP/1.1 200 ")

    asyncio.run(asyncio.wait_for(run(), 10))


def test_this_machine_and_proxies_may_open_more_connections_than_others() -> None:
    limits = ConnectionLimits(per_peer=1, proxies=(ip_network("10.0.0.0/24"),))
    opened = OpenConnections(limits)
    for address in ("127.0.0.1", "::1", "10.0.0.7", ""):
        assert [opened.add(address) for _ in range(3)] == [None] * 3
    assert [opened.add("2001:db8::1"), opened.add("2001:db8::2")] == [None, "peer"]
    opened.remove("2001:db8::1")
    assert opened.add("2001:db8::2") is None
