"""POST to an address that a user chose, without server-side request forgery: the name is resolved
once, the checked address is connected to, time and size are limited, redirects are not followed.
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
BODY_MAX_BYTES = 64 * 1024  # read and discarded
BODY_S = 1.0
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})[ \r]")
# What local callers may also reach: this machine and private networks, without metadata services.
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
    """The result of an attempt.

    Attributes:
        status_code: of the response; None if there was none.
        error: why there was no response or no success; never contains the response's body.
    """

    status_code: int | None
    error: str = ""

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return self.status_code is not None and 200 <= self.status_code < 300


async def post(
    url: str, *, trust: TrustLevel, headers: Mapping[str, str], body: bytes
) -> WebhookResponse:
    """Send the body and return the response's status, or the error if there is no response."""
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
        return WebhookResponse(None, "the connection failed, or the response was not HTTP")
    error_text = "" if 200 <= status < 300 else f"answered {status}"
    return WebhookResponse(status, error_text)


async def _exchange(url: str, trust: TrustLevel, headers: Mapping[str, str], body: bytes) -> int:
    parts = urlsplit(check_address(url, trust))
    host, secure = str(parts.hostname), parts.scheme == "https"
    port = parts.port or DEFAULT_PORTS[parts.scheme]
    address = await _resolve(host, port, trust)
    reader, writer = await asyncio.open_connection(
        address,
        port,
        limit=HEAD_MAX_BYTES,
        ssl=_context() if secure else None,
        server_hostname=host if secure else None,
    )
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = {
            "Host": parts.netloc,
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
    """Return the status of the final response, after any informational ones (1xx)."""
    while True:
        found = _STATUS.match(await reader.readuntil(b"\r\n\r\n"))
        if found is None:
            raise EOFError("not an HTTP response")
        if (status := int(found[1])) >= 200:
            return status


async def _resolve(host: str, port: int, trust: TrustLevel) -> str:
    """Resolve the host and return the address to connect to.

    Raises:
        AddressNotAllowed: One of the host's addresses is not allowed at this trust level.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [ipaddress.ip_address(str(one[4][0]).partition("%")[0]) for one in found]
    if not addresses or not all(may_reach(one, port, trust) for one in addresses):
        raise AddressNotAllowed("The host name resolves to an address that is not allowed.")
    return str(addresses[0])


def may_reach(address: Address, port: int, trust: TrustLevel) -> bool:
    """Return whether a webhook of this trust level may be sent to this address.

    Webhooks of remote callers follow the rule for the pages that remote callers may open. Local
    callers may also name private networks and this machine, on any port, for programs of theirs.
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
    """Return the TLS context, created once: reading the certificate authorities takes 30 ms."""
    return ssl.create_default_context()
