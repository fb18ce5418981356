"""One HTTP request: to public addresses alone, resolved once, pinned, bounded in time and size."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import re
import socket
import ssl
import time
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from runners.docker_runner.errors import NetworkClosed, RequestFailed, WrongArguments
from runners.docker_runner.tool import (
    MAX_TIMEOUT_MS,
    OUTPUT_BYTES,
    Arguments,
    ToolEnvironment,
    runner_tool,
    seconds_until,
)
from runners.errors import AddressNotAllowed, InvalidTarget
from runners.network.address import DEFAULT_PORTS, check_address
from runners.network.egress import EgressDenied, EgressPolicy, NameNotResolved
from runners.tools.base import Effect

MAX_HEADERS = 64
CONNECT_S = 10.0  # nothing else can end it
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VALUE = re.compile(r"[\t\x20-\x7e]{0,8192}")
# What belongs to the connection, which is ours.
_OURS = {
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
_CHUNK = 64 * 1024


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    if len(headers) > MAX_HEADERS:
        raise ValueError(f"has more than {MAX_HEADERS} headers")
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise ValueError(f"{name[:64]!r} is no header that can be sent")
        if name.lower() in _OURS:
            raise ValueError(f"{name} is set by the runner")
    return headers


class HttpRequest(Arguments):
    """What to ask of whom."""

    url: str
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "GET"
    headers: Annotated[dict[str, str], AfterValidator(_check_headers)] = {}
    body: str | None = None
    timeout_ms: Annotated[int, Field(alias="timeoutMs", ge=1)] = 15_000
    max_bytes: Annotated[int, Field(alias="maxBytes", ge=0, le=OUTPUT_BYTES)] = OUTPUT_BYTES


@runner_tool("http.request", Effect.ONCE)
async def http_request(args: HttpRequest, env: ToolEnvironment) -> Mapping[str, Any]:
    """Send one request to a public address and return the answer; redirects are answers like any
    other. A body that is no UTF-8 comes as base64.
    """
    if not env.folder.allow_net:
        raise NetworkClosed("This runner has no network; its operator can give it one.")
    timeout_ms = min(args.timeout_ms, MAX_TIMEOUT_MS)
    deadline = time.monotonic() + timeout_ms / 1000
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            exchange = await _prepare(args, deadline)
            working = asyncio.ensure_future(asyncio.to_thread(exchange.carry_out))
            working.add_done_callback(lambda done: done.cancelled() or done.exception())
            try:
                return await asyncio.shield(working)
            finally:
                exchange.hang_up()
    except TimeoutError:
        raise RequestFailed(f"No whole answer came within {timeout_ms} ms.") from None
    except ssl.SSLError as error:
        raise RequestFailed(f"No secure connection: {error.reason or 'TLS failed'}.") from None
    except (OSError, http.client.HTTPException, ValueError):
        raise RequestFailed("The connection failed, or what came was no HTTP answer.") from None


async def _prepare(args: HttpRequest, deadline: float) -> _Exchange:
    """Judge the address by the rule for remote callers, by what it resolves to."""
    try:
        url = check_address(args.url, "remote")
    except InvalidTarget as error:
        raise WrongArguments(error.message) from None
    except AddressNotAllowed as error:
        raise NetworkClosed(error.message, details=error.details) from None
    parts, rule = urlsplit(url), EgressPolicy()
    host, port = (
        str(parts.hostname),
        parts.port or DEFAULT_PORTS[parts.scheme],
    )
    try:
        addresses = await rule.addresses_of(host)
        rule.check(host, port, addresses)
    except EgressDenied:
        raise NetworkClosed(f"{host[:253]} is not {rule.requirement}.") from None
    except NameNotResolved:
        raise RequestFailed(f"The name {host[:253]} has no address.") from None
    return _Exchange(args, url, str(addresses[0]), port, deadline)


class _Exchange:
    """One request on a connection of its own, carried out by a thread."""

    def __init__(
        self, args: HttpRequest, url: str, address: str, port: int, deadline: float
    ) -> None:
        self._args, self._parts, self._deadline = args, urlsplit(url), deadline
        self._address, self._port = address, port
        self._socket: socket.socket | None = None
        self._is_over = False

    def carry_out(self) -> dict[str, Any]:
        """Connect to the address that was judged, ask, and read at most maxBytes."""
        try:
            return self._ask(self._connect())
        finally:
            self._close()

    def hang_up(self) -> None:
        """End it, whatever its thread waits for."""
        self._is_over = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _connect(self) -> http.client.HTTPConnection:
        left = min(CONNECT_S, max(0.001, seconds_until(self._deadline)))
        host = str(self._parts.hostname)
        self._socket = socket.create_connection((self._address, self._port), left)
        self._socket.settimeout(max(0.001, seconds_until(self._deadline)))
        if self._parts.scheme == "https":
            self._socket = _tls().wrap_socket(self._socket, server_hostname=host)
        if self._is_over:
            raise ConnectionAbortedError
        connection = http.client.HTTPConnection(host, self._port)
        connection.sock = self._socket
        return connection

    def _ask(self, connection: http.client.HTTPConnection) -> dict[str, Any]:
        args, parts = self._args, self._parts
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        ours = {"Host": parts.netloc, "Accept-Encoding": "identity", "Connection": "close"}
        if not any(name.lower() == "user-agent" for name in args.headers):
            ours["User-Agent"] = "Continuity-Runner/1.0"
        body = None if args.body is None else args.body.encode()
        connection.request(args.method, path, body=body, headers={**ours, **args.headers})
        with connection.getresponse() as answer:
            data = bytearray()
            while len(data) <= args.max_bytes and (piece := answer.read(_CHUNK)):
                data += piece
            if len(data) <= args.max_bytes and answer.length:
                raise http.client.IncompleteRead(b"", answer.length)
            kept = bytes(data[: args.max_bytes])
            return {
                "status": answer.status,
                "headers": _headers(answer),
                **_body(kept),
                "truncated": len(data) > args.max_bytes,
            }

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()


def _headers(answer: http.client.HTTPResponse) -> dict[str, str]:
    """Return the headers by lower-case name, repeated ones joined."""
    merged: dict[str, str] = {}
    for name, value in answer.getheaders():
        text = value.encode("latin-1", "replace").decode("utf-8", "replace")
        merged[name.lower()] = f"{merged[name.lower()]}, {text}" if name.lower() in merged else text
    return merged


def _body(data: bytes) -> dict[str, str]:
    try:
        return {"body": data.decode(), "encoding": "utf-8"}
    except UnicodeDecodeError as error:
        if error.end == len(data) and error.reason == "unexpected end of data":
            return {"body": data.decode(errors="ignore"), "encoding": "utf-8"}
        return {"body": base64.b64encode(data).decode(), "encoding": "base64"}


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
