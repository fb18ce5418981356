"""The SOCKS proxy of one remote session: it applies the egress policy to each connection.

The browser context uses it for every host, loopback included, so the browser itself resolves and
connects to nothing. With SOCKS, HTTP, TLS and WebSocket are all the same kind of tunnel: the proxy
reads a host and a port, and never the data. It connects to the addresses that it checked.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from runners.network import socks5
from runners.network.allowlist import Address
from runners.network.egress import EgressDenied, EgressPolicy, NameNotResolved
from runners.network.failed_connections import ConnectFailure, FailedConnections
from runners.network.peer_owner import is_from_another_user
from runners.network.socks5 import Destination, InvalidSocksRequest, Reply

if TYPE_CHECKING:
    from playwright.async_api import ProxySettings

MAX_CONNECTIONS = 256  # at once; Chromium itself opens 32, and as many again for WebSockets
MAX_LOOKUPS = 4  # at once
CACHE_SECONDS = 60.0
MAX_CACHED_NAMES = 1000
REQUEST_SECONDS = 10.0
CONNECT_SECONDS = 5.0  # for each address
MAX_ADDRESSES = 4  # tried for one host
IDLE_SECONDS = 300.0
FLUSH_SECONDS = 10.0
CHUNK = 64 * 1024
_REPLIES: dict[ConnectFailure, Reply] = {
    "forbidden": Reply.NOT_ALLOWED,
    "ERR_CONNECTION_REFUSED": Reply.REFUSED,
}
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class TunnelFailed(Exception):
    """No tunnel could be opened; `reason` names the cause."""

    def __init__(self, reason: ConnectFailure) -> None:
        super().__init__(reason)
        self.reason = reason


class EgressProxy:
    """A listener on a free port of 127.0.0.1, from `open` until `close`, on one loop.

    On Linux it serves only processes of its own user.

    Attributes:
        failed_connections: the connections that were refused or failed.
    """

    def __init__(self, egress: EgressPolicy) -> None:
        self.failed_connections = FailedConnections(egress.requirement)
        self._egress = egress
        self._server: asyncio.Server | None = None
        self._tunnels: set[asyncio.Task[None]] = set()
        self._lookups = asyncio.Semaphore(MAX_LOOKUPS)
        self._names: dict[str, tuple[float, Sequence[Address]]] = {}

    @classmethod
    async def open(cls, egress: EgressPolicy) -> EgressProxy:
        """Start listening."""
        proxy = cls(egress)
        proxy._server = await asyncio.start_server(proxy._accept, "127.0.0.1", 0, limit=CHUNK)
        return proxy

    @property
    def port(self) -> int:
        """The port on which it listens; 0 after it was closed."""
        listening = self._server.sockets if self._server else ()
        return int(listening[0].getsockname()[1]) if listening else 0

    def settings(self) -> ProxySettings:
        """Return the proxy settings of a browser context that sends all traffic through it."""
        # Explicit, because an environment variable of Playwright's can change the default.
        return {"server": f"socks5://127.0.0.1:{self.port}", "bypass": "<-loopback>"}

    async def close(self) -> None:
        """Stop listening and abort every tunnel; safe to call twice."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        tunnels = list(self._tunnels)
        for tunnel in tunnels:
            tunnel.cancel()
        await asyncio.gather(*tunnels, return_exceptions=True)
        if server is not None:
            await server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tunnels) >= MAX_CONNECTIONS or self._server is None:
            writer.transport.abort()
            return
        tunnel = asyncio.create_task(self._serve((reader, writer)))
        self._tunnels.add(tunnel)
        tunnel.add_done_callback(self._tunnels.discard)

    async def _serve(self, near: Stream) -> None:
        ends = [near]
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                if await _is_from_another_user(near):
                    return
                destination = await socks5.read_request(*near)
            ends.append(await self._reach(destination, near[1]))
            await _relay(*ends)
            async with asyncio.timeout(FLUSH_SECONDS):
                for _, writer in ends:
                    writer.close()
                    await writer.wait_closed()
        except (OSError, EOFError, TimeoutError, InvalidSocksRequest, TunnelFailed):
            near[1].close()
        finally:
            for _, writer in ends:
                writer.transport.abort()  # no effect on a closed connection

    async def _reach(self, to: Destination, browser: asyncio.StreamWriter) -> Stream:
        """Connect to a destination and send the browser the reply.

        Raises:
            TunnelFailed: The connection failed; the reply was sent.
        """
        try:
            far = await self._connect(to)
        except TunnelFailed as failure:
            self.failed_connections.record(to.host, to.port, failure.reason)
            socks5.send_reply(browser, _REPLIES.get(failure.reason, Reply.UNREACHABLE))
            raise
        socks5.send_reply(browser, Reply.GRANTED)
        return far

    async def _connect(self, to: Destination) -> Stream:
        try:
            addresses = await self._addresses_of(to.host)
            self._egress.check(to.host, to.port, addresses)
        except EgressDenied:
            raise TunnelFailed("forbidden") from None
        except NameNotResolved:
            raise TunnelFailed("ERR_NAME_NOT_RESOLVED") from None
        reason: ConnectFailure = "ERR_ADDRESS_UNREACHABLE"
        for address in addresses[:MAX_ADDRESSES]:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    # The address that was checked, not the name, which could resolve differently.
                    return await asyncio.open_connection(str(address), to.port, limit=CHUNK)
            except TimeoutError:
                reason = "ERR_CONNECTION_TIMED_OUT"
            except ConnectionRefusedError:
                reason = "ERR_CONNECTION_REFUSED"
            except OSError:
                continue
        raise TunnelFailed(reason)

    async def _addresses_of(self, host: str) -> Sequence[Address]:
        """Return a host's addresses, cached for a minute so that a page sees a stable host."""
        now = time.monotonic()
        cached = self._names.get(host)
        if cached is not None and cached[0] > now:
            return cached[1]
        async with self._lookups:
            found = await self._egress.addresses_of(host)
        if len(self._names) >= MAX_CACHED_NAMES:
            self._names.clear()
        self._names[host] = (now + CACHE_SECONDS, found)
        return found


async def _is_from_another_user(near: Stream) -> bool:
    client, server = (near[1].get_extra_info(name) for name in ("peername", "sockname"))
    return await asyncio.to_thread(is_from_another_user, client[:2], server[:2])


async def _relay(near: Stream, far: Stream) -> None:
    """Copy bytes in both directions until either end closes or IDLE_SECONDS pass without data."""
    chunks = [0]
    pumps = {
        asyncio.create_task(_pump(near[0], far[1], chunks)),
        asyncio.create_task(_pump(far[0], near[1], chunks)),
    }
    try:
        before, has_ended = -1, False
        while not has_ended and chunks[0] != before:
            before = chunks[0]
            done, _ = await asyncio.wait(
                pumps, timeout=IDLE_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            has_ended = bool(done)
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _pump(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, chunks: list[int]
) -> None:
    """Copy bytes in one direction, as fast as the sink accepts them; count the chunks."""
    with contextlib.suppress(OSError):
        while data := await source.read(CHUNK):
            chunks[0] += 1
            sink.write(data)
            await sink.drain()
