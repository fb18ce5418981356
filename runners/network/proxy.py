"""The way out for the pages of one remote session: a proxy on this machine that judges, pins and
passes on.

The browser context is told to use it for every host, loopback included, so the browser resolves and
connects to nothing itself. It speaks SOCKS, which makes HTTP, TLS and WebSocket the same tunnel: it
reads a host and a port, and none of what goes through.
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
KEEP_ADDRESSES_SECONDS = 60.0
MAX_KEPT_NAMES = 1000
REQUEST_SECONDS = 10.0
CONNECT_SECONDS = 5.0  # an address; a host has up to
MAX_ADDRESSES = 4
IDLE_SECONDS = 300.0
FLUSH_SECONDS = 10.0
CHUNK = 64 * 1024
_REPLIES: dict[ConnectFailure, Reply] = {
    "forbidden": Reply.NOT_ALLOWED,
    "ERR_CONNECTION_REFUSED": Reply.REFUSED,
}
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class TunnelFailed(Exception):
    """There is no tunnel; `outcome` says why."""

    def __init__(self, outcome: ConnectFailure) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class EgressProxy:
    """A listener on a free port of 127.0.0.1, from `open` until `close`, on one loop.

    It serves this user's processes alone where the system tells whose they are (Linux).

    Attributes:
        outcomes: the connections that were not made.
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
        """The port it listens on; 0 once it is closed."""
        listening = self._server.sockets if self._server else ()
        return int(listening[0].getsockname()[1]) if listening else 0

    def settings(self) -> ProxySettings:
        """Return what a browser context is made with so that this is its only way out."""
        # Said in full: an environment variable of Playwright's could take the default away.
        return {"server": f"socks5://127.0.0.1:{self.port}", "bypass": "<-loopback>"}

    async def close(self) -> None:
        """Stop listening and break every tunnel off; safe to call twice."""
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
                if await _is_foreign(near):
                    return
                destination = await socks5.read_request(*near)
            ends.append(await self._reach(destination, near[1]))
            await _pass_on(*ends)
            async with asyncio.timeout(FLUSH_SECONDS):
                for _, writer in ends:
                    writer.close()
                    await writer.wait_closed()
        except (OSError, EOFError, TimeoutError, InvalidSocksRequest, TunnelFailed):
            near[1].close()
        finally:
            for _, writer in ends:
                writer.transport.abort()  # does nothing to what has closed

    async def _reach(self, to: Destination, answers: asyncio.StreamWriter) -> Stream:
        """Connect to a destination and answer the browser.

        Raises:
            NoConnection: It was told that there is none.
        """
        try:
            far = await self._connect(to)
        except TunnelFailed as none:
            self.failed_connections.note(to.host, to.port, none.outcome)
            socks5.answer(answers, _REPLIES.get(none.outcome, Reply.UNREACHABLE))
            raise
        socks5.answer(answers, Reply.GRANTED)
        return far

    async def _connect(self, to: Destination) -> Stream:
        try:
            addresses = await self._addresses_of(to.host)
            self._egress.check(to.host, to.port, addresses)
        except EgressDenied:
            raise TunnelFailed("forbidden") from None
        except NameNotResolved:
            raise TunnelFailed("ERR_NAME_NOT_RESOLVED") from None
        outcome: ConnectFailure = "ERR_ADDRESS_UNREACHABLE"
        for address in addresses[:MAX_ADDRESSES]:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    # An address, not the name: what was checked is what is connected to.
                    return await asyncio.open_connection(str(address), to.port, limit=CHUNK)
            except TimeoutError:
                outcome = "ERR_CONNECTION_TIMED_OUT"
            except ConnectionRefusedError:
                outcome = "ERR_CONNECTION_REFUSED"
            except OSError:
                continue
        raise TunnelFailed(outcome)

    async def _addresses_of(self, host: str) -> Sequence[Address]:
        """Return a host's addresses, the same ones for a minute: a page's connections go to one
        place.
        """
        now = time.monotonic()
        kept = self._names.get(host)
        if kept is not None and kept[0] > now:
            return kept[1]
        async with self._lookups:
            found = await self._egress.addresses_of(host)
        if len(self._names) >= MAX_KEPT_NAMES:
            self._names.clear()
        self._names[host] = (now + KEEP_ADDRESSES_SECONDS, found)
        return found


async def _is_foreign(near: Stream) -> bool:
    client, server = (near[1].get_extra_info(name) for name in ("peername", "sockname"))
    return await asyncio.to_thread(is_from_another_user, client[:2], server[:2])


async def _pass_on(near: Stream, far: Stream) -> None:
    """Pass bytes both ways until either end closes, or nothing moved for a while."""
    moved = [0]
    pumps = {
        asyncio.create_task(_pump(near[0], far[1], moved)),
        asyncio.create_task(_pump(far[0], near[1], moved)),
    }
    try:
        before, over = -1, False
        while not over and moved[0] != before:
            before = moved[0]
            done, _ = await asyncio.wait(
                pumps, timeout=IDLE_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            over = bool(done)
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, moved: list[int]) -> None:
    """Pass bytes one way, as fast as the sink takes them."""
    with contextlib.suppress(OSError):
        while data := await source.read(CHUNK):
            moved[0] += 1
            sink.write(data)
            await sink.drain()
