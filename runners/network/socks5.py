"""The server side of the SOCKS5 handshake (RFC 1928), as far as Chromium uses it.

Chromium sends the host as it is written in the URL and lets the proxy resolve it.
"""

from __future__ import annotations

import asyncio
import enum
import ipaddress
import re
from dataclasses import dataclass

VERSION = 5
NO_CREDENTIALS = 0
CONNECT = 1
IPV4, NAME, IPV6 = 1, 3, 4
_HOST = re.compile(r"[a-z0-9_.:-]{1,255}", re.IGNORECASE)


class Reply(enum.IntEnum):
    """Reply codes of the proxy."""

    GRANTED = 0
    NOT_ALLOWED = 2
    UNREACHABLE = 4
    REFUSED = 5
    NOT_SUPPORTED = 7


class InvalidSocksRequest(Exception):
    """The client did not send a SOCKS5 CONNECT request."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A host (lower case, without brackets) and a port."""

    host: str
    port: int


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Destination:
    """Negotiate with a client and return the destination that it requests.

    Raises:
        InvalidSocksRequest: Not SOCKS5, or a command other than CONNECT.
        EOFError, OSError: The client disconnected.
    """
    version, methods = await reader.readexactly(2)
    if version != VERSION or NO_CREDENTIALS not in await reader.readexactly(methods):
        raise InvalidSocksRequest
    writer.write(bytes((VERSION, NO_CREDENTIALS)))
    version, command, _, kind = await reader.readexactly(4)
    host = await _host(reader, kind)
    port = int.from_bytes(await reader.readexactly(2), "big")
    if version != VERSION or command != CONNECT or not _HOST.fullmatch(host) or port == 0:
        send_reply(writer, Reply.NOT_SUPPORTED)
        raise InvalidSocksRequest
    return Destination(host.lower(), port)


def send_reply(writer: asyncio.StreamWriter, reply: Reply) -> None:
    """Send the reply to a request; the bound address is zero, because browsers ignore it."""
    writer.write(bytes((VERSION, reply, 0, IPV4, 0, 0, 0, 0, 0, 0)))


async def _host(reader: asyncio.StreamReader, kind: int) -> str:
    if kind == NAME:
        (length,) = await reader.readexactly(1)
        return (await reader.readexactly(length)).decode("ascii", "replace")
    if kind == IPV4:
        return str(ipaddress.IPv4Address(await reader.readexactly(4)))
    if kind == IPV6:
        return str(ipaddress.IPv6Address(await reader.readexactly(16)))
    raise InvalidSocksRequest
