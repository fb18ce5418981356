"""A run's browser session: its own browser context and a pool of tabs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from runners.browser.errors import browser_errors, browser_lost, no_page_open
from runners.browser.page_scripts import activity_script, frame_input_script
from runners.browser.session.closing import CLOSE_SECONDS, SessionResource, wait_closed
from runners.browser.session.downloads import discard
from runners.browser.session.refused_requests import late_warnings
from runners.browser.session.tab import Tab
from runners.browser.tracing.trace import TraceFolder, Tracer
from runners.errors import PageCrashed
from runners.network.egress import EgressPolicy
from runners.network.proxy import EgressProxy
from runners.trust_level import TrustLevel

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Download, Page

logger = logging.getLogger(__name__)

PUBLIC_ONLY = EgressPolicy()
OPEN_SECONDS = 70.0  # including the start of the browser
STATE_SECONDS = 5.0


class OpenBrowserSession:
    """The tabs of one run, or of consecutive runs if the session is named.

    The tabs share cookies and storage with each other and with no other session. Pages of a remote
    caller connect through a proxy that enforces `egress`; pages of a local caller connect directly.

    Attributes:
        run_id: the run that uses it.
        storage: the initial cookies and storage of a new context, as Playwright's storage_state.
        renewals: how often its context was lost with its browser and created again, with the
            cookies and logins of `storage`.
        tracer: records Playwright traces of its pages.
        resources: what tools store for later calls, by name; closed with the session.
    """

    def __init__(
        self,
        browser: Callable[[], Awaitable[Browser]],
        *,
        run_id: str,
        trust: TrustLevel,
        max_tabs: int = 20,
        egress: EgressPolicy = PUBLIC_ONLY,
        storage: Mapping[str, Any] | None = None,
        traces: TraceFolder | None = None,
    ) -> None:
        self.run_id = run_id
        self.trust = trust
        self.storage = storage
        self.renewals = 0
        self.tracer = Tracer(traces)
        self.resources: dict[str, SessionResource] = {}
        self._browser = browser
        self._egress = egress
        self._proxy: EgressProxy | None = None
        self._context: BrowserContext | None = None
        self._opening = asyncio.Lock()
        self._slots = asyncio.Semaphore(max_tabs)
        self._free: list[Tab] = []
        self._tabs: list[Tab] = []
        self._closings: set[asyncio.Task[None]] = set()
        self._run_tab: Tab | None = None
        self._opened_tabs: list[Tab] = []  # those that pages of the run tab opened
        self._run_tab_owner = ""  # the run whose pages it shows
        self._run_tab_lock = asyncio.Lock()
        self._check_browser = False  # something failed: check the browser before a tab is reused
        self._closed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def tab(self) -> AsyncIterator[Tab]:
        """Lease a tab; waits while `max_tabs` are leased. It may still show its last page.

        Raises:
            PageCrashed: The session is closed, or no browser is available.
        """
        await self._slots.acquire()
        tab = self._reuse() or await self._wait_for_new()
        tab.begin_lease(self.run_id)
        try:
            yield tab
        except PageCrashed:
            self._check_browser = True
            raise
        finally:
            self._release(tab)

    async def ready(self) -> None:
        """Wait until a browser is available to open tabs in, and start it if necessary.

        The start continues when the caller is cancelled.

        Raises:
            PageCrashed, ChromiumMissing: The browser does not start.
        """
        if self.has_page:
            return
        starting = asyncio.ensure_future(self._browser())
        starting.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(starting)

    @property
    def has_page(self) -> bool:
        """Whether the run tab is open, with the page that the run's steps left in it."""
        if self._run_tab is None or self._run_tab_owner != self.run_id:
            return False
        return self._run_tab.is_alive

    @contextlib.asynccontextmanager
    async def run_tab(
        self, *, fresh: bool = False, switch_to: Tab | None = None
    ) -> AsyncIterator[Tab]:
        """Lease the run tab: the tab that the run's steps share, with its page, between calls.

        Args:
            fresh: open a tab if there is none or its page died. For callers that navigate first.
            switch_to: make this tab the run tab, if the run tab opened it and it is open.

        Raises:
            PageCrashed: No page is open, or it died.
        """
        async with self._run_tab_lock:
            if switch_to is not None:
                self._switch_run_tab(switch_to)
            if not self.has_page:
                await self._open_run_tab(fresh=fresh)
            self._run_tab_owner = self.run_id
            tab = self._run_tab
            if tab is None:
                raise browser_lost()
            tab.begin_lease(self.run_id)
            yield tab

    async def _open_run_tab(self, *, fresh: bool) -> None:
        is_lost = self._run_tab is not None and not self._run_tab.is_alive
        if not fresh:
            raise browser_lost() if is_lost else no_page_open()
        if self._run_tab is not None and not is_lost:
            return  # the tab of the session's previous run is reused for this one
        if self._run_tab is not None:
            self._check_browser = True
            self._release(self._run_tab)
            self._run_tab = None
        await self._slots.acquire()
        self._run_tab = self._reuse() or await self._wait_for_new()

    async def close_run_tab(self) -> None:
        """Close the run tab and the tabs that it opened, if any, once no call uses them."""
        async with self._run_tab_lock:
            for opened in self._opened_tabs:
                self._close_tab(opened)
            tab, self._run_tab, self._opened_tabs = self._run_tab, None, []
            if tab is not None:
                self._close_tab(tab).add_done_callback(lambda _: self._slots.release())

    def is_run_tab(self, tab: Tab) -> bool:
        """Return whether this is the run tab."""
        return tab is self._run_tab

    async def keep_popup(self, popup: Page) -> Tab:
        """Make a window that a page of the run tab opened a tab beside it.

        Raises what the browser raises; the window is closed then.
        """
        failed_connections = self._proxy.failed_connections if self._proxy else None
        tab = await Tab.of_page(popup, failed_connections)
        tab.run_id, tab.requested_url = self.run_id, popup.url
        self._tabs.append(tab)
        self._opened_tabs.append(tab)
        return tab

    async def close_opened_tab(self, tab: Tab) -> bool:
        """Close one of several tabs of the run; if it is the run tab, another one becomes that.

        Returns false if it is the only one, or is not open: it is not closed then.
        """
        async with self._run_tab_lock:
            self._replace_run_tab(tab)
            if tab not in self._opened_tabs:
                return False
            self._opened_tabs.remove(tab)
            await asyncio.shield(self._close_tab(tab))
            return True

    def _replace_run_tab(self, lost: Tab) -> None:
        others = [tab for tab in self._opened_tabs if tab.is_alive]
        if lost is self._run_tab and others:
            self._switch_run_tab(others[-1])

    def _switch_run_tab(self, tab: Tab) -> None:
        if self._run_tab is not None and tab in self._opened_tabs:
            self._opened_tabs[self._opened_tabs.index(tab)] = self._run_tab
            self._run_tab = tab

    @property
    def is_closed(self) -> bool:
        """Whether the session was closed. Safe from any thread."""
        return self._closed.is_set()

    def live_tab(self) -> Tab | None:
        """Return the run tab for the live page, or None if no page is open."""
        return self._run_tab if self.has_page else None

    @contextlib.asynccontextmanager
    async def takeover_tab(self) -> AsyncIterator[Tab | None]:
        """Lease the run tab for the input of a person; no call works on it meanwhile."""
        async with self._run_tab_lock:
            yield self.live_tab()

    def tabs_of_run(self) -> list[Tab]:
        """Return the tabs with the run's pages, most recently used first; some may be dead."""
        tabs = [tab for tab in self._tabs if tab.run_id == self.run_id]
        return sorted(tabs, key=lambda tab: tab.used_at, reverse=True)

    async def take_trace(self, snapshot_name: str) -> bytes | None:
        """Return the trace of the run's pages; None if there is none, or the run opened no page."""
        if not (tabs := self.tabs_of_run()):
            return None
        page = next((tab.page for tab in tabs if tab.is_usable), None)
        return await self.tracer.take(page, snapshot_name)

    def isolated_session(self, egress: EgressPolicy) -> OpenBrowserSession:
        """Return a separate session in the same browser; the caller closes it."""
        return OpenBrowserSession(self._browser, run_id=self.run_id, trust="remote", egress=egress)

    def open_tabs(self) -> list[Tab]:
        """Return the tabs that can still be read, most recently used first."""
        usable = [tab for tab in self._tabs if tab.is_usable]
        return sorted(usable, key=lambda tab: tab.used_at, reverse=True)

    def mark_refusal_reported(self, host: str) -> None:
        """Record that the caller was informed about this forbidden host."""
        if self._proxy is not None:
            self._proxy.failed_connections.mark_reported(host)

    def late_refusals(self, since: float) -> list[str]:
        """Return a warning for each host refused since then that was not reported yet.

        `since` is a `time.monotonic()` value.
        """
        return (
            late_warnings(self._proxy.failed_connections, since) if self._proxy is not None else []
        )

    async def count_cookies(self) -> int:
        """Return how many cookies the session has."""
        try:
            return len(await self._context.cookies()) if self._context is not None else 0
        except browser_errors():
            raise browser_lost() from None

    async def read_state(self) -> tuple[Mapping[str, Any], list[str]] | None:
        """Return cookies and storage, and the URLs of the tabs, most recently used first.

        None if there is no new state: no page was opened, or the browser died.
        """
        context = self._context
        if context is None:
            return None
        urls = [tab.page.url for tab in self.open_tabs()]
        try:
            async with asyncio.timeout(STATE_SECONDS):
                storage: Any = await context.storage_state(indexed_db=True)
        except browser_errors() as error:
            logger.warning("the state of a session could not be read: %s", type(error).__name__)
            return None
        self.storage = storage
        return storage, [url for url in urls if url.startswith(("http:", "https:"))]

    async def close(self) -> None:
        """Close the session and all its tabs; safe to call twice, and while tabs are leased."""
        self._closed.set()
        await self.tracer.drop()
        while self.resources:
            await self.resources.popitem()[1].close()
        context, self._context = self._context, None
        self._free.clear()
        self._run_tab = None
        self._opened_tabs.clear()
        if context is not None:
            await wait_closed(context.close())
        if self._closings:
            await asyncio.wait(set(self._closings), timeout=CLOSE_SECONDS)
        await self._close_proxy()
        self._tabs.clear()

    def _reuse(self) -> Tab | None:
        while self._free and not self._check_browser:
            tab = self._free.pop()
            if tab.is_usable:
                return tab
            self._close_tab(tab)
        return None

    async def _wait_for_new(self) -> Tab:
        """Open a tab; if the caller stops waiting, the tab is released once it is open."""
        opening = asyncio.create_task(self._open_tab())
        try:
            return await asyncio.wait_for(asyncio.shield(opening), OPEN_SECONDS)
        except BaseException as error:
            opening.add_done_callback(self._release_unused)
            if isinstance(error, TimeoutError):
                self._check_browser = True
                raise browser_lost() from None
            raise

    def _release_unused(self, opening: asyncio.Task[Tab]) -> None:
        if opening.cancelled() or opening.exception() is not None:
            self._slots.release()
        else:
            self._release(opening.result())

    async def _open_tab(self) -> Tab:
        for is_last_attempt in (False, True):
            try:
                context = await self._ready_context()
                tab = await Tab.open(
                    context, self._proxy.failed_connections if self._proxy else None
                )
            except browser_errors() as error:
                logger.warning("no tab could be opened: %s", type(error).__name__)
                self._check_browser = True
                if is_last_attempt or self._closed.is_set():
                    raise browser_lost() from None
            else:
                self._tabs.append(tab)
                return tab
        raise browser_lost()

    async def _ready_context(self) -> BrowserContext:
        """Return the session's context; create it again if its browser died."""
        async with self._opening:
            if self._closed.is_set():
                raise browser_lost()
            browser = await self._browser()
            if self._context is not None and self._context.browser is browser:
                self._check_browser = False
                return self._context
            if self._context is not None:
                self.renewals += 1
                self._free.clear()
                self._tabs.clear()
                self._opened_tabs.clear()
            context = await self._new_context(browser)
            if self._closed.is_set():
                await wait_closed(context.close())
                await self._close_proxy()
                raise browser_lost()
            self._context, self._check_browser = context, False
            return context

    async def _new_context(self, browser: Browser) -> BrowserContext:
        if self.trust != "local" and self._proxy is None:
            self._proxy = await EgressProxy.open(self._egress)
        context = await browser.new_context(
            proxy=self._proxy.settings() if self._proxy else None,
            viewport={"width": 1280, "height": 720},
            accept_downloads=True,  # each is deleted, unless its tab keeps it
            permissions=[],
            storage_state=cast(Any, self.storage),
        )
        context.on("page", self._on_page)
        await context.add_init_script(activity_script())
        await context.add_init_script(frame_input_script())
        await self.tracer.follow(context)
        return context

    def _on_page(self, page: Page) -> None:
        page.on("download", lambda file: self._on_download(page, file))
        page.on("close", self._on_page_closed)

    def _on_page_closed(self, page: Page) -> None:
        """Forget a tab that closed itself, if it is one of several of the run."""
        for tab in [tab for tab in self._tabs if tab.page is page]:
            self._replace_run_tab(tab)
            if tab in self._opened_tabs:
                self._opened_tabs.remove(tab)
                self._tabs.remove(tab)

    def _on_download(self, page: Page, file: Download) -> None:
        tab = next((tab for tab in self._tabs if tab.page is page), None)
        if tab is not None:
            tab.downloads.on_file(file)
        else:
            discarding = asyncio.create_task(discard(file))
            self._closings.add(discarding)
            discarding.add_done_callback(self._closings.discard)

    async def _close_proxy(self) -> None:
        if self._proxy is not None:
            await self._proxy.close()

    def _release(self, tab: Tab) -> None:
        if tab.is_usable and not self._closed.is_set() and tab in self._tabs:
            self._free.append(tab)
            self._slots.release()
            return
        # The slot is free once the page is closed, so that there are never more than `max_tabs`
        # pages.
        self._close_tab(tab).add_done_callback(lambda _: self._slots.release())

    def _close_tab(self, tab: Tab) -> asyncio.Task[None]:
        if tab in self._tabs:
            self._tabs.remove(tab)
        closing = asyncio.create_task(wait_closed(tab.close()))
        self._closings.add(closing)
        closing.add_done_callback(self._closings.discard)
        return closing
