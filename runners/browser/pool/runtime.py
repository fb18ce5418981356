"""One browser per process, started when it is first needed and again when it died.

Everything here runs on one asyncio loop (`runners.invocation.event_loop`). Playwright is imported
only when a
browser is started, so that doors which merely list tools do not pay for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners import metrics
from runners.browser.pool.chromium import Chromium, find_chromium, launch_args, wants_sandbox
from runners.browser.pool.fallback_font import write_fontconfig
from runners.browser.pool.temp_home import BrowserHome, sweep_homes
from runners.browser.session.session import PUBLIC_ONLY, BrowserSession
from runners.browser.tracing.trace import TraceFolder
from runners.errors import PageCrashed
from runners.network.egress import EgressPolicy
from runners.trust import TrustLevel

if TYPE_CHECKING:
    from playwright.async_api import Browser, CDPSession, Playwright

logger = logging.getLogger(__name__)

LAUNCH_SECONDS = 60.0
PATH = re.compile(r"/\S+")
PING_SECONDS = 10.0
CLOSE_SECONDS = 5.0


class BrowserRuntime:
    """The process's browser and the driver that steers it; sessions are opened on it."""

    def __init__(
        self, chromium: Callable[[], Chromium] = find_chromium, egress: EgressPolicy = PUBLIC_ONLY
    ) -> None:
        self._find, self._egress = chromium, egress
        self._lock = asyncio.Lock()
        self._home: BrowserHome | None = None
        self._driver: Playwright | None = None
        self._browser: Browser | None = None
        self._line: CDPSession | None = None
        self.launches = 0
        self._traces = TraceFolder()

    async def open_session(
        self,
        *,
        run_id: str,
        trust: TrustLevel,
        max_tabs: int = 20,
        storage: Mapping[str, Any] | None = None,
    ) -> BrowserSession:
        """Open a session for a run; it starts the browser when its first tab is asked for.

        It begins with the cookies and the storage given.

        The caller closes it. A session outlives the browser: after a PageCrashed its next tab comes
        from a new one.
        """
        return BrowserSession(
            self.browser,
            run_id=run_id,
            trust=trust,
            max_tabs=max_tabs,
            egress=self._egress,
            storage=storage,
            traces=self._traces,
        )

    async def browser(self) -> Browser:
        """Return a browser that answers, starting it, or starting it again, when there is none.

        Raises:
            ChromiumMissing: No browser is installed; the message names the way out.
            PageCrashed: A browser is installed, but it does not start.
        """
        async with self._lock:
            if self._browser is not None and await self._answers():
                return self._browser
            if self._browser is not None:
                metrics.browser_crashed("browser")
            await self._discard()
            self._browser = await self._launch()
            return self._browser

    def count_pages(self) -> int:
        """Return how many pages are open now. Safe from any thread."""
        browser = self._browser
        return sum(len(context.pages) for context in browser.contexts) if browser else 0

    async def close(self) -> None:
        """End browser and driver and delete their files. The runtime may be used again after."""
        async with self._lock:
            await self._discard()

    async def _answers(self) -> bool:
        """Ask the browser something through its driver: a killed driver gives no other sign."""
        if self._browser is None or self._line is None or not self._browser.is_connected():
            return False
        try:
            await asyncio.wait_for(self._line.send("Browser.getVersion"), PING_SECONDS)
        except Exception as error:  # noqa: BLE001  (whatever it is, the browser did not answer)
            logger.warning(
                "the browser does not answer (%s), it is started again", type(error).__name__
            )
            return False
        return True

    async def _launch(self) -> Browser:
        # Heavy, and needed nowhere before: 0.2 s and its own Node process.
        from playwright.async_api import async_playwright

        chromium = await asyncio.to_thread(self._find)
        await asyncio.to_thread(sweep_homes)
        self._home = BrowserHome()
        home = self._home.path
        self._traces.path = home / "traces"
        try:
            async with asyncio.timeout(LAUNCH_SECONDS):
                with self._home.as_tmpdir():
                    self._driver = await async_playwright().start()
                browser = await self._start(self._driver, chromium, home)
                self._line = await browser.new_browser_cdp_session()
        except BaseException as error:
            await asyncio.shield(self._discard())
            if not isinstance(error, Exception):
                raise
            told = PATH.sub("…", str(error).partition("\n")[0])
            logger.warning("Chromium (%s) did not start: %s", chromium.source, told)
            raise PageCrashed("Chromium did not start; `manage.py doctor` tells why.") from None
        self.launches += 1
        return browser

    async def _start(self, driver: Playwright, chromium: Chromium, home: Path) -> Browser:
        sandbox = wants_sandbox()
        try:
            browser = await self._start_with(driver, chromium, home, sandbox=sandbox)
        except Exception as error:
            if not sandbox or "sandbox" not in str(error).lower():
                raise
            logger.warning("Chromium's sandbox cannot run on this machine; it is started without")
            sandbox = False
            browser = await self._start_with(driver, chromium, home, sandbox=sandbox)
        metrics.browser_launched(sandbox=sandbox)
        return browser

    async def _start_with(
        self, driver: Playwright, chromium: Chromium, home: Path, *, sandbox: bool
    ) -> Browser:
        fonts = await asyncio.to_thread(write_fontconfig, home)
        return await driver.chromium.launch(
            executable_path=str(chromium.path),
            env={**os.environ, "TMPDIR": str(home), "FONTCONFIG_FILE": str(fonts)},
            headless=True,
            args=launch_args(),
            chromium_sandbox=sandbox,
            handle_sigterm=False,
            handle_sigint=False,
            handle_sighup=False,
            timeout=LAUNCH_SECONDS * 1000,
            traces_dir=self._traces.path,
        )

    async def _discard(self) -> None:
        browser, driver, home = self._browser, self._driver, self._home
        self._browser = self._driver = self._home = self._line = None
        # What is dead or stuck cannot be closed: it is ended with its directory.
        if browser is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(browser.close(), CLOSE_SECONDS)
        if driver is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(driver.stop(), CLOSE_SECONDS)
        if home is not None:
            await asyncio.to_thread(home.remove)


_runtimes: dict[int, BrowserRuntime] = {}


def get_runtime() -> BrowserRuntime:
    """Return this process's runtime; to be used on `runners.invocation.event_loop.get_loop()`
    only.
    """
    return _runtimes.setdefault(os.getpid(), BrowserRuntime())


def count_open_pages() -> int:
    """Return how many pages this process has open now; it starts no browser. Safe from any
    thread.
    """
    runtime = _runtimes.get(os.getpid())
    return runtime.count_pages() if runtime else 0
