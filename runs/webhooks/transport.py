"""One POST to an address that somebody else chose: resolved once, pinned, bounded in time and size.

Redirects are answers like any other; nothing is followed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

from runners.errors import AddressNotAllowed, ToolFailed
from runners.network.address import (
    DEFAULT_PORTS,
    TrustLevel,
    check_address,
    embedded_ipv4,
    is_allowed,
    is_public,
)
from runners.network.allowlist import Address, is_metadata
from runners.network.egress import is_allowed_for_remote

TIMEOUT_S = 10.0
HEAD_MAX_BYTES = 16 * 1024
BODY_MAX_BYTES = 64 * 1024  # read for politeness, and thrown away
BODY_S = 1.0
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})[ \r]")
# What a local caller may reach besides: this machine and private networks, but no metadata service.
_LOCAL = [
    ipaddress.ip_network(text)
    for text in (
        "127.0.0.0/8",
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "::1/128",
        "fc00::/7",
    )
]


@dataclass(frozen=True, slots=True)
class WebhookResponse:
    """What came of a try.

    Attributes:
        status_code: of the answer; None where there was none.
        error: why there was none, or that the status is no success; never what the other side said.
    """

    status_code: int | None
    error: str = ""

    @property
    def is_success(self) -> bool:
        """Whether the other side took it."""
        return self.status_code is not None and 200 <= self.status_code < 300


async def post(url: str, *, trust: TrustLevel, headers: Mapping[str, str], body: bytes) -> WebhookResponse:
    """Send the body and return the answer's status; whatever goes wrong is an answer too."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            status = await _exchange(url, trust, headers, body)
    except TimeoutError:
        return WebhookResponse(None, f"no answer within {TIMEOUT_S:.0f} s")
    except ToolFailed as refusal:
        return WebhookResponse(None, refusal.message)
    except ssl.SSLError as error:
        return WebhookResponse(None, f"no secure connection: {error.reason or 'TLS failed'}"[:200])
    except socket.gaierror:
        return WebhookResponse(None, "the host name is unknown")
    except (OSError, EOFError, asyncio.LimitOverrunError, UnicodeError):
        return WebhookResponse(None, "the connection failed, or what came was no HTTP answer")
    said = "" if 200 <= status < 300 else f"answered {status}"
    return WebhookResponse(status, said)


async def _exchange(url: str, trust: TrustLevel, headers: Mapping[str, str], body: bytes) -> int:
    place = urlsplit(check_address(url, trust))
    host, secure = str(place.hostname), place.scheme == "https"
    port = place.port or DEFAULT_PORTS[place.scheme]
    address = await _resolve(host, port, trust)
    reader, writer = await asyncio.open_connection(
        address,
        port,
        limit=HEAD_MAX_BYTES,
        ssl=_context() if secure else None,
        server_hostname=host if secure else None,
    )
    try:
        path = (place.path or "/") + (f"?{place.query}" if place.query else "")
        lines = {
            "Host": place.netloc,
            "User-Agent": "Continuity-Webhooks/1.0",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Connection": "close",
            **headers,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        writer.write(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode("ascii") + body)
        await writer.drain()
        status = await _status(reader)
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(BODY_S):
                await reader.read(BODY_MAX_BYTES)
        return status
    finally:
        writer.transport.abort()


async def _status(reader: asyncio.StreamReader) -> int:
    """Return the status of the answer, past any that only announces it (1xx)."""
    while True:
        found = _STATUS.match(await reader.readuntil(b"\r\n\r\n"))
        if found is None:
            raise EOFError("no HTTP answer")
        if (status := int(found[1])) >= 200:
            return status


async def _resolve(host: str, port: int, trust: TrustLevel) -> str:
    """Return the one address that is connected to.

    Raises:
        AddressNotAllowed: Any address of the name is not for this trust level.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [ipaddress.ip_address(str(one[4][0]).partition("%")[0]) for one in found]
    if not addresses or not all(may_reach(one, port, trust) for one in addresses):
        raise AddressNotAllowed("The host name stands for an address that is not allowed.")
    return str(addresses[0])


def may_reach(address: Address, port: int, trust: TrustLevel) -> bool:
    """Tell whether a webhook of this trust level may be told at this address.

    What remote callers register is judged by the rule for their pages. Local ones may also name
    private networks and this machine, on any port, where their own programs listen.
    """
    if trust != "local":
        return is_allowed_for_remote(address, port)
    if is_public(address) or is_allowed(address, port):
        return True
    if is_metadata(address):
        return False
    if any(address in net for net in _LOCAL):
        return True
    inner = embedded_ipv4(address)
    return bool(inner) and all(any(one in net for net in _LOCAL) for one in inner)


@cache
def _context() -> ssl.SSLContext:
    """Return what checks certificates, made once: reading the authorities takes 30 ms."""
    return ssl.create_default_context()
