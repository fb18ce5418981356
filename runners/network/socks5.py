"""The few bytes of SOCKS5 (RFC 1928) that a browser and its proxy exchange before a tunnel opens.

Chromium names the host as it stands in the address and leaves its resolution to the proxy.
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
    """What the proxy answers to a request."""

    GRANTED = 0
    NOT_ALLOWED = 2
    UNREACHABLE = 4
    REFUSED = 5
    NOT_SUPPORTED = 7


class InvalidSocksRequest(Exception):
    """What came is not a request of a browser."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A host, in lower case and without brackets, and a port."""

    host: str
    port: int


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Destination:
    """Greet a client and return where it wants to go.

    Raises:
        InvalidSocksRequest: It speaks something else, or asks for more than a connection.
        EOFError, OSError: It went away.
    """
    version, methods = await reader.readexactly(2)
    if version != VERSION or NO_CREDENTIALS not in await reader.readexactly(methods):
        raise InvalidSocksRequest
    writer.write(bytes((VERSION, NO_CREDENTIALS)))
    version, command, _, kind = await reader.readexactly(4)
    host = await _host(reader, kind)
    port = int.from_bytes(await reader.readexactly(2), "big")
    if version != VERSION or command != CONNECT or not _HOST.fullmatch(host) or port == 0:
        answer(writer, Reply.NOT_SUPPORTED)
        raise InvalidSocksRequest
    return Destination(host.lower(), port)


def answer(writer: asyncio.StreamWriter, reply: Reply) -> None:
    """Answer a request; the address that the proxy uses is nobody's business and left out."""
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
