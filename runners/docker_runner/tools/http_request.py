"""The tool http.request: one HTTP request to a public address, limited in time and size."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from runners.docker_runner.errors import NetworkClosed, RequestFailed, WrongArguments
from runners.docker_runner.tool import (
    MAX_TIMEOUT_MS,
    OUTPUT_BYTES,
    Arguments,
    ToolEnvironment,
    runner_tool,
)
from runners.errors import AddressNotAllowed, InvalidTarget
from runners.network.address import check_address
from runners.network.egress import EgressDenied, EgressPolicy
from runners.network.http_client import (
    CONNECTION_ERRORS,
    ResponseTooLarge,
    WireUsage,
    connection_error_text,
    create_pool,
    send_request,
)
from runners.tools.base import Effect

MAX_HEADERS = 64
HEAD_MAX_BYTES = 64 * 1024
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VALUE = re.compile(r"[\t\x20-\x7e]{0,8192}")
# Headers that the runner sets, or that belong to the connection.
_RESERVED = {
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
        if name.lower() in _RESERVED:
            raise ValueError(f"{name} is set by the runner")
    return headers


class HttpRequest(Arguments):
    """Arguments of http.request."""

    url: str
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "GET"
    headers: Annotated[dict[str, str], AfterValidator(_check_headers)] = {}
    body: str | None = None
    timeout_ms: Annotated[int, Field(alias="timeoutMs", ge=1)] = 15_000
    max_bytes: Annotated[int, Field(alias="maxBytes", ge=0, le=OUTPUT_BYTES)] = OUTPUT_BYTES


@runner_tool("http.request", Effect.ONCE)
async def http_request(args: HttpRequest, env: ToolEnvironment) -> Mapping[str, Any]:
    """Send one request to a public address and return the response; redirects are not followed. A
    body that is not UTF-8 is returned as base64.
    """
    if not env.folder.allow_net:
        raise NetworkClosed("This runner has no network; its operator can give it one.")
    try:
        url = check_address(args.url, "remote")
    except InvalidTarget as error:
        raise WrongArguments(error.message) from None
    except AddressNotAllowed as error:
        raise NetworkClosed(error.message, details=error.details) from None
    timeout_ms = min(args.timeout_ms, MAX_TIMEOUT_MS)
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            return await _exchange(args, url)
    except TimeoutError:
        raise RequestFailed(f"No complete response came within {timeout_ms} ms.") from None
    except EgressDenied as error:
        raise NetworkClosed(connection_error_text(error)) from None
    except CONNECTION_ERRORS as error:
        raise RequestFailed(connection_error_text(error)) from None
    except ResponseTooLarge:
        raise RequestFailed("The response's headers are too large.") from None


async def _exchange(args: HttpRequest, url: str) -> dict[str, Any]:
    """Send the request and return the response, with at most maxBytes of its body."""
    sent = {"Connection": "close", **args.headers}
    if not any(name.lower() == "user-agent" for name in args.headers):
        sent["User-Agent"] = "Continuity-Runner/1.0"
    body = None if args.body is None else args.body.encode()
    usage = WireUsage(HEAD_MAX_BYTES + 2 * OUTPUT_BYTES)
    data, is_truncated = bytearray(), False
    async with (
        create_pool(EgressPolicy()) as pool,
        send_request(pool, args.method, url, headers=sent, content=body, usage=usage) as response,
    ):
        try:
            async for piece in response.aiter_stream():
                data += piece
                if is_truncated := len(data) > args.max_bytes:
                    break
        except ResponseTooLarge:  # so many small chunks that their sizes are most of it
            is_truncated = True
        return {
            "status": response.status,
            "headers": _headers(response.headers),
            **_body(bytes(data[: args.max_bytes])),
            "truncated": is_truncated,
        }


def _headers(sent: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers by lower-case name, repeated ones joined."""
    merged: dict[str, str] = {}
    for raw, value in sent:
        name, text = raw.decode("ascii").lower(), value.decode("utf-8", "replace")
        merged[name] = f"{merged[name]}, {text}" if name in merged else text
    return merged


def _body(data: bytes) -> dict[str, str]:
    try:
        return {"body": data.decode(), "encoding": "utf-8"}
    except UnicodeDecodeError as error:
        if error.end == len(data) and error.reason == "unexpected end of data":
            return {"body": data.decode(errors="ignore"), "encoding": "utf-8"}
        return {"body": base64.b64encode(data).decode(), "encoding": "base64"}
