"""A run's browser session: a context of its own and a pool of tabs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from runners.browser.errors import browser_errors, browser_lost, no_page_open
from runners.browser.page_scripts import activity_script
from runners.browser.session.closing import CLOSE_SECONDS, SessionResource, ended
from runners.browser.session.refused_requests import late_warnings
from runners.browser.session.tab import Tab
from runners.browser.tracing.trace import TraceFolder, Tracer
from runners.errors import PageCrashed
from runners.network.egress import EgressPolicy
from runners.network.proxy import EgressProxy
from runners.trust import TrustLevel

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext

logger = logging.getLogger(__name__)

PUBLIC_ONLY = EgressPolicy()
OPEN_SECONDS = 70.0  # starting the browser included
STATE_SECONDS = 5.0


class BrowserSession:
    """The tabs of one run, or of one run after the other where it is named. They share cookies and
    storage, and nothing with any other session.

    Those of a remote caller reach the net through a proxy that holds to `egress`; a local caller's
    reach it as the machine does.

    Attributes:
        run_id: the run that uses it.
        storage: cookies and storage that a new context begins with, as Playwright writes them.
        renewals: how often its context was lost with its browser and made anew (cookies and logins
            are then those of `storage`).
        tracer: records what its pages do, where that is wanted.
        belongings: what tools keep for later calls, by name; closed with it.
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
        self.max_tabs = max_tabs
        self.renewals = 0
        self.tracer = Tracer(traces)
        self.resources: dict[str, SessionResource] = {}
        self._browser = browser
        self._egress = egress
        self._proxy: EgressProxy | None = None
        self._context: BrowserContext | None = None
        self._opening = asyncio.Lock()
        self._seats = asyncio.Semaphore(max_tabs)
        self._free: list[Tab] = []
        self._tabs: list[Tab] = []
        self._endings: set[asyncio.Task[None]] = set()
        self._kept: Tab | None = None
        self._kept_for = ""
        self._keeping = asyncio.Lock()
        self._doubtful = False
        self._closed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def tab(self) -> AsyncIterator[Tab]:
        """Lease a tab, waiting while `max_tabs` are leased. It may still show its last page.

        Raises:
            PageCrashed: The session is closed, or no browser can be had.
        """
        await self._seats.acquire()
        tab = self._reuse() or await self._wait_for_new()
        tab.begin_lease(self.run_id)
        try:
            yield tab
        except PageCrashed:
            self._doubtful = True
            raise
        finally:
            self._give_back(tab)

    async def ready(self) -> None:
        """Wait until there is a browser to open tabs in; it is started where there is none, and
        goes on starting when nobody waits for it any more.

        Raises:
            PageCrashed, ChromiumMissing: It does not start.
        """
        if self.has_page:
            return
        starting = asyncio.ensure_future(self._browser())
        starting.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(starting)

    @property
    def has_page(self) -> bool:
        """Whether the tab that the run's steps share is there, with what they left in it."""
        if self._kept is None or self._kept_for != self.run_id:
            return False
        return self._kept.is_alive

    @contextlib.asynccontextmanager
    async def run_tab(self, *, fresh: bool = False) -> AsyncIterator[Tab]:
        """Lease the tab that the run's steps share: it keeps its page from one call to the next.

        `fresh` is for who opens an address: where there is no such tab, or its page died, it is
        made.

        Raises:
            PageCrashed: There is no page to go on with, or it died.
        """
        async with self._keeping:
            if not self.has_page:
                await self._keep_another(fresh=fresh)
            self._kept_for = self.run_id
            tab = self._kept
            if tab is None:
                raise browser_lost()
            tab.begin_lease(self.run_id)
            yield tab

    async def _keep_another(self, *, fresh: bool) -> None:
        lost = self._kept is not None and not self._kept.is_alive
        if not fresh:
            raise browser_lost() if lost else no_page_open()
        if self._kept is not None and not lost:
            return  # another run's, in the same session: its page is left for the new one
        if self._kept is not None:
            self._doubtful = True
            self._give_back(self._kept)
            self._kept = None
        await self._seats.acquire()
        self._kept = self._reuse() or await self._wait_for_new()

    async def close_run_tab(self) -> None:
        """Close the tab that the run's steps share, where there is one, once it is not in use."""
        async with self._keeping:
            tab, self._kept = self._kept, None
            if tab is not None:
                self._end(tab).add_done_callback(lambda _: self._seats.release())

    @property
    def is_closed(self) -> bool:
        """Whether it is over. Safe from any thread."""
        return self._closed.is_set()

    def live_tab(self) -> Tab | None:
        """Return the tab that the run's steps share, for somebody who looks on."""
        return self._kept if self.has_page else None

    @contextlib.asynccontextmanager
    async def takeover_tab(self) -> AsyncIterator[Tab | None]:
        """Lease that tab as it is, for a person's hands: no call works on it meanwhile."""
        async with self._keeping:
            yield self.live_tab()

    def tabs_of_run(self) -> list[Tab]:
        """Return the tabs that show what the present run opened, last first; some may be dead."""
        own = [tab for tab in self._tabs if tab.run_id == self.run_id]
        return sorted(own, key=lambda tab: tab.used_at, reverse=True)

    def isolated_session(self, egress: EgressPolicy) -> BrowserSession:
        """Return a session in the same browser, apart from this one; the caller closes it."""
        return BrowserSession(self._browser, run_id=self.run_id, trust="remote", egress=egress)

    def open_tabs(self) -> list[Tab]:
        """Return the tabs that can still be looked at, the one used last first."""
        usable = [tab for tab in self._tabs if tab.is_usable]
        return sorted(usable, key=lambda tab: tab.used_at, reverse=True)

    def mark_refusal_reported(self, host: str) -> None:
        """Note that the caller is told of this forbidden host."""
        if self._proxy is not None:
            self._proxy.failed_connections.mark_reported(host)

    def late_refusals(self, since: float) -> list[str]:
        """Return a sentence for each host that was refused since a `time.monotonic()` and that
        nobody was told of.
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
        """Return cookies and storage, and what the tabs show, the one used last first.

        None where there is nothing new to tell: no page was opened, or the browser died.
        """
        context = self._context
        if context is None:
            return None
        urls = [tab.page.url for tab in self.open_tabs()]
        try:
            async with asyncio.timeout(STATE_SECONDS):
                storage: Any = await context.storage_state(indexed_db=True)
        except browser_errors() as error:
            logger.warning("a session's state could not be read: %s", type(error).__name__)
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
        self._kept = None
        if context is not None:
            await ended(context.close())
        if self._endings:
            await asyncio.wait(set(self._endings), timeout=CLOSE_SECONDS)
        await self._close_proxy()
        self._tabs.clear()

    def _reuse(self) -> Tab | None:
        while self._free and not self._doubtful:
            tab = self._free.pop()
            if tab.is_usable:
                return tab
            self._end(tab)
        return None

    async def _wait_for_new(self) -> Tab:
        """Make a tab; when its caller stops waiting, it is given back as soon as it is there."""
        making = asyncio.create_task(self._make())
        try:
            return await asyncio.wait_for(asyncio.shield(making), OPEN_SECONDS)
        except BaseException as error:
            making.add_done_callback(self._give_back_unused)
            if isinstance(error, TimeoutError):
                self._doubtful = True
                raise browser_lost() from None
            raise

    def _give_back_unused(self, making: asyncio.Task[Tab]) -> None:
        if making.cancelled() or making.exception() is not None:
            self._seats.release()
        else:
            self._give_back(making.result())

    async def _make(self) -> Tab:
        for is_last in (False, True):
            try:
                context = await self._ready_context()
                tab = await Tab.open(
                    context, self._proxy.failed_connections if self._proxy else None
                )
            except browser_errors() as error:
                logger.warning("no tab could be opened: %s", type(error).__name__)
                self._doubtful = True
                if is_last or self._closed.is_set():
                    raise browser_lost() from None
            else:
                self._tabs.append(tab)
                return tab
        raise browser_lost()

    async def _ready_context(self) -> BrowserContext:
        """Return the session's context, made anew when its browser died."""
        async with self._opening:
            if self._closed.is_set():
                raise browser_lost()
            browser = await self._browser()
            if self._context is not None and self._context.browser is browser:
                self._doubtful = False
                return self._context
            if self._context is not None:
                self.renewals += 1
                self._free.clear()
                self._tabs.clear()
            context = await self._new_context(browser)
            if self._closed.is_set():
                await ended(context.close())
                await self._close_proxy()
                raise browser_lost()
            self._context, self._doubtful = context, False
            return context

    async def _new_context(self, browser: Browser) -> BrowserContext:
        if self.trust != "local" and self._proxy is None:
            self._proxy = await EgressProxy.open(self._egress)
        context = await browser.new_context(
            proxy=self._proxy.settings() if self._proxy else None,
            viewport={"width": 1280, "height": 720},
            accept_downloads=False,
            permissions=[],
            storage_state=cast(Any, self.storage),
        )
        await context.add_init_script(activity_script())
        await self.tracer.follow(context)
        return context

    async def _close_proxy(self) -> None:
        if self._proxy is not None:
            await self._proxy.close()

    def _give_back(self, tab: Tab) -> None:
        if tab.is_usable and not self._closed.is_set() and tab in self._tabs:
            self._free.append(tab)
            self._seats.release()
            return
        # The seat is free when the page is: never more than `max_tabs` pages, also while some are
        # being closed.
        self._end(tab).add_done_callback(lambda _: self._seats.release())

    def _end(self, tab: Tab) -> asyncio.Task[None]:
        if tab in self._tabs:
            self._tabs.remove(tab)
        ending = asyncio.create_task(ended(tab.close()))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
        return ending
