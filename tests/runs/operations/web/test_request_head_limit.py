"""The size limit of a request's head: over 64 KiB, the server answers 431 and closes the
connection."""

from __future__ import annotations

import asyncio
import json

import pytest

from runs.operations.web.http_protocol import HEAD_MAX_BYTES
from tests.support.rest.asgi_server import echo_size, serve_asgi


def _send(*chunks: bytes, pause_s: float = 0) -> bytes:
    async def exchange() -> bytes:
        async with serve_asgi(echo_size) as server:
            reader, writer = await asyncio.open_connection(*server.address)
            try:
                for chunk in chunks:
                    writer.write(chunk)
                    await writer.drain()
                    await asyncio.sleep(pause_s)
                return await asyncio.wait_for(reader.read(1 << 20), 5)
            except ConnectionError:
                return b""
            finally:
                writer.close()

    return asyncio.run(exchange())


def _head(size: int) -> bytes:
    """Return a request whose target and headers have `size` bytes, as the limit counts them."""
    fixed = len("/") + len("host") + len("x") + 4 + len("a") + 4
    return b"GET / HTTP/1.1\r\nhost: x\r\na: " + b"b" * (size - fixed) + b"\r\n\r\n"


def test_a_head_of_the_largest_size_is_accepted() -> None:
    assert _send(_head(HEAD_MAX_BYTES)).startswith(b"HTTP/1.1 200")


def test_one_byte_more_is_refused_in_the_common_error_shape() -> None:
    answer = _send(_head(HEAD_MAX_BYTES + 1))
    assert answer.startswith(b"HTTP/1.1 431")
    assert b"connection: close" in answer
    problem = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert problem["errorCode"] == "INVALID_PARAMETER"
    assert set(problem) == {"errorCode", "message", "details", "retryable", "recovery"}


def test_an_endless_head_is_refused_before_its_end() -> None:
    chunks = [b"GET / HTTP/1.1\r\na: "] + [b"b" * 20_000] * 6
    assert _send(*chunks, pause_s=0.02).startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize("count", [5000, 20_000])
def test_many_small_headers_count_together(count: int) -> None:
    head = b"GET / HTTP/1.1\r\n" + b"".join(b"a%d: b\r\n" % n for n in range(count)) + b"\r\n"
    size = sum(len(b"a%d" % n) + 1 + 4 for n in range(count)) + 1
    expected = b"HTTP/1.1 431" if size > HEAD_MAX_BYTES else b"HTTP/1.1 200"
    assert _send(head).startswith(expected)


def test_a_body_does_not_count_as_head() -> None:
    head = b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 300000\r\n\r\n"
    assert _send(head + b"c" * 300_000).endswith(b"300000")


def test_requests_on_one_connection_are_counted_one_by_one() -> None:
    large = _head(HEAD_MAX_BYTES - 1000)
    last = b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n"
    assert _send(large, large, last, pause_s=0.1).count(b"HTTP/1.1 200") == 3
