"""Requests of a page that the egress policy refused: a failure if the page itself was refused, a
warning if a part of it was.
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
MAX_REPORTED = 20
# How long the browser's event may come after the proxy's refusal; a worker's request has no event.
EVENT_SECONDS, LATE_EVENT_SECONDS = 1.0, 0.3
_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}


class RefusedRequests:
    """Records the refused requests of one page of a remote session, per lease of its tab.

    Args:
        fail: called with the failure when the present document itself goes to a refused host.
    """

    def __init__(
        self, page: Page, failed_connections: FailedConnections, fail: Callable[[ToolFailed], None]
    ) -> None:
        self._page, self._connections, self._fail = page, failed_connections, fail
        self._hosts: Counter[str] = Counter()
        self._lease_started = time.monotonic()
        self._has_arrived = False
        self._failed_url: str | None = None
        self._event = asyncio.Event()
        self._sockets: dict[WebSocket, float] = {}  # not yet known to be open, and since when
        page.on("requestfailed", self._on_failed)
        page.on("websocket", self._on_websocket)

    def begin_lease(self) -> None:
        """Forget the requests that were refused during the previous lease."""
        self._hosts.clear()
        self._sockets.clear()
        self._lease_started = time.monotonic()

    def begin_navigation(self) -> None:
        """Record that a navigation starts; until it commits, requests may be the last page's."""
        self._has_arrived, self._failed_url = False, None

    def note_arrival(self) -> None:
        """Record that a document was committed; later refusals belong to it."""
        self._has_arrived = True

    async def explain(self, failure: ToolFailed, url: str) -> ToolFailed:
        """Return the actual cause of a failed navigation to `url`.

        Behind the proxy the browser only reports a failed tunnel, and a redirect may have led to
        another host.
        """
        if failure.details.get("netError") != NO_TUNNEL:
            return failure
        deadline = time.monotonic() + EVENT_SECONDS
        while self._failed_url is None and await self._wait_for_event(deadline):
            pass
        failed_url = self._failed_url or url
        host, port = _host_and_port(failed_url)
        reason = self._connections.get(host, port)
        if reason == "forbidden":
            return address_not_public(host)
        if reason is None:
            return NavigationFailed("The browser could not open the page.", details={"url": url})
        return network_failure(reason, url, at=failed_url)

    async def warnings(self) -> list[str]:
        """Return a warning for each host that was refused to the page since its lease began."""
        deadline = time.monotonic() + LATE_EVENT_SECONDS
        while self._expects_event() and await self._wait_for_event(deadline):
            pass
        others = self._connections.unattributed(self._lease_started)
        self._connections.mark_reported(*self._hosts, *others)
        requirement = self._connections.requirement
        warnings = [
            f"Blocked: the page requested {host}, which is not {requirement}"
            f" ({count} {'request' if count == 1 else 'requests'})."
            for host, count in self._hosts.items()
        ]
        warnings += [
            f"Blocked: a worker or popup requested {host}, which is not {requirement}."
            for host in others
        ]
        return _truncated(warnings)

    def _expects_event(self) -> bool:
        """Return whether the browser has yet to report a request that was or may be refused."""
        if self._connections.unattributed(self._lease_started):
            return True
        # Reading a page does not wait for WebSockets, so a new one may not have reached the proxy.
        latest = time.monotonic() - LATE_EVENT_SECONDS
        return any(at > latest for at in self._sockets.values())

    async def _wait_for_event(self, deadline: float) -> bool:
        """Wait for the browser's next event of a failed request; return False if none came."""
        self._event.clear()
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                await self._event.wait()
        except TimeoutError:
            return False
        return True

    def _on_failed(self, request: Request) -> None:
        is_document = request.is_navigation_request() and self._is_main(request)
        if is_document:
            self._failed_url = request.url
        host, port = _host_and_port(request.url)
        if self._connections.get(host, port) == "forbidden":
            self._connections.attribute_to_page(host)
            if not is_document:
                self._count(host)
            elif self._has_arrived:
                self._fail(address_not_public(host))
        self._event.set()

    def _is_main(self, request: Request) -> bool:
        try:
            return request.frame == self._page.main_frame
        except browser_errors():
            return False  # a frame that does not exist yet, or a worker's request

    def _on_websocket(self, socket: WebSocket) -> None:
        self._sockets[socket] = time.monotonic()
        socket.on("socketerror", lambda _: self._on_socket_error(socket))
        socket.on("close", self._forget_socket)
        socket.on("framereceived", lambda _: self._forget_socket(socket))

    def _on_socket_error(self, socket: WebSocket) -> None:
        self._forget_socket(socket)
        host, port = _host_and_port(socket.url)
        if self._connections.get(host, port) == "forbidden":
            self._connections.attribute_to_page(host)
            self._count(host)
        self._event.set()

    def _forget_socket(self, socket: WebSocket) -> None:
        self._sockets.pop(socket, None)

    def _count(self, host: str) -> None:
        if host in self._hosts or len(self._hosts) < 2 * MAX_REPORTED:
            self._hosts[host] += 1


def late_warnings(failed_connections: FailedConnections, since: float) -> list[str]:
    """Return a warning for each host refused since then that no warning or failure named yet.

    Such a host was requested after its page was read, or by a page that was never read.
    `since` is a `time.monotonic()` value.
    """
    hosts, requirement = failed_connections.unreported(since), failed_connections.requirement
    failed_connections.mark_reported(*hosts)
    return _truncated(
        [f"Blocked: a page later requested {host}, which is not {requirement}." for host in hosts]
    )


def _truncated(warnings: list[str]) -> list[str]:
    more = [f"Blocked: {len(warnings) - MAX_REPORTED} more addresses that are not public."]
    return warnings[:MAX_REPORTED] + (more if len(warnings) > MAX_REPORTED else [])


def _host_and_port(url: str) -> tuple[str, int]:
    """Return host and port of a URL as the browser sends them to the proxy."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = None
    return parts.hostname or "", port or _PORTS.get(parts.scheme, 0)
