"""What a page was refused on its way out: a failure where it is the page itself, a warning where it
is a part of it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from runners.browser.errors import browser_errors, network_failure
from runners.errors import NavigationFailed, ToolFailed
from runners.network.address import address_not_public
from runners.network.failed_connections import FailedConnections

if TYPE_CHECKING:
    from playwright.async_api import Page, Request, WebSocket

NO_TUNNEL = "ERR_SOCKS_CONNECTION_FAILED"
MAX_NAMED = 20
# How long the browser's word may come after its proxy's; the word of a worker never comes.
NEWS_SECONDS, LATE_NEWS_SECONDS = 1.0, 0.3
_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}


class RefusedRequests:
    """Watches one page of a remote session, lease by lease."""

    def __init__(
        self, page: Page, outcomes: FailedConnections, give_up: Callable[[ToolFailed], None]
    ) -> None:
        self._page, self._outcomes, self._give_up = page, outcomes, give_up
        self._hosts: Counter[str] = Counter()
        self._began = time.monotonic()
        self._arrived = False
        self._lost: str | None = None
        self._news = asyncio.Event()
        self._sockets: dict[WebSocket, float] = {}  # not known to be open, and since when
        page.on("requestfailed", self._on_failed)
        page.on("websocket", self._on_websocket)

    def begin_lease(self) -> None:
        """Forget what the last caller's page was refused."""
        self._hosts.clear()
        self._sockets.clear()
        self._began = time.monotonic()

    def begin_navigation(self) -> None:
        """Note that an address is being opened: until it arrives, the last page may still ask."""
        self._arrived, self._lost = False, None

    def note_arrival(self) -> None:
        """Note that a document arrived: what is refused from now on is the present page's."""
        self._arrived = True

    async def explain(self, failure: ToolFailed, url: str) -> ToolFailed:
        """Return what a failed navigation to `url` was really about: behind the proxy the browser
        only says that it got no tunnel, and a redirect may have led elsewhere.
        """
        if failure.details.get("netError") != NO_TUNNEL:
            return failure
        until = time.monotonic() + NEWS_SECONDS
        while self._lost is None and await self._hear(until):
            pass
        lost = self._lost or url
        host, port = _place(lost)
        outcome = self._outcomes.of(host, port)
        if outcome == "forbidden":
            return address_not_public(host)
        if outcome is None:
            return NavigationFailed("The browser could not open the page.", details={"url": url})
        return network_failure(outcome, url, at=lost)

    async def warnings(self) -> list[str]:
        """Return a sentence for each host that the page was refused since its lease began."""
        until = time.monotonic() + LATE_NEWS_SECONDS
        while self._is_news_due() and await self._hear(until):
            pass
        others = self._outcomes.unattributed(self._began)
        self._outcomes.name(*self._hosts, *others)
        told = [
            f"Blocked: the page asked for {host}, which is not {self._outcomes.requirement}"
            f" ({count} {'request' if count == 1 else 'requests'})."
            for host, count in self._hosts.items()
        ]
        told += [
            f"Blocked: a worker or popup asked for {host}, which is not {self._outcomes.requirement}."
            for host in others
        ]
        return _first_of(told)

    def _is_news_due(self) -> bool:
        """Say whether the browser has yet to tell of something that was, or may be, refused."""
        if self._outcomes.unattributed(self._began):
            return True
        # No reading waits for a socket, so a young one may not have come to the proxy yet.
        latest = time.monotonic() - LATE_NEWS_SECONDS
        return any(at > latest for at in self._sockets.values())

    async def _hear(self, until: float) -> bool:
        """Wait for the browser's next word about a request that failed; False when none came."""
        self._news.clear()
        try:
            async with asyncio.timeout(until - time.monotonic()):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _on_failed(self, request: Request) -> None:
        is_document = request.is_navigation_request() and self._is_main(request)
        if is_document:
            self._lost = request.url
        host, port = _place(request.url)
        if self._outcomes.of(host, port) == "forbidden":
            self._outcomes.attribute_to_page(host)
            if not is_document:
                self._note(host)
            elif self._arrived:
                self._give_up(address_not_public(host))
        self._news.set()

    def _is_main(self, request: Request) -> bool:
        try:
            return request.frame == self._page.main_frame
        except browser_errors():
            return False  # a frame that is not there yet, or a worker's request

    def _on_websocket(self, socket: WebSocket) -> None:
        self._sockets[socket] = time.monotonic()
        socket.on("socketerror", lambda _: self._on_lost_socket(socket))
        socket.on("close", self._forget_socket)
        socket.on("framereceived", lambda _: self._forget_socket(socket))

    def _on_lost_socket(self, socket: WebSocket) -> None:
        self._forget_socket(socket)
        host, port = _place(socket.url)
        if self._outcomes.of(host, port) == "forbidden":
            self._outcomes.attribute_to_page(host)
            self._note(host)
        self._news.set()

    def _forget_socket(self, socket: WebSocket) -> None:
        self._sockets.pop(socket, None)

    def _note(self, host: str) -> None:
        if host in self._hosts or len(self._hosts) < 2 * MAX_NAMED:
            self._hosts[host] += 1


def late_warnings(outcomes: FailedConnections, since: float) -> list[str]:
    """Return a sentence for each host that was refused since a `time.monotonic()`, and that no
    warning or failure named: asked for after its page was read, or by a page that nobody read.
    """
    hosts = outcomes.unreported(since)
    outcomes.name(*hosts)
    return _first_of(
        [
            f"Blocked: a page asked later for {host}, which is not {outcomes.requirement}."
            for host in hosts
        ]
    )


def _first_of(told: list[str]) -> list[str]:
    more = [f"Blocked: {len(told) - MAX_NAMED} more addresses that are not public."]
    return told[:MAX_NAMED] + (more if len(told) > MAX_NAMED else [])


def _place(url: str) -> tuple[str, int]:
    """Return host and port as the proxy was asked for them."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = None
    return parts.hostname or "", port or _PORTS.get(parts.scheme, 0)
