"""One browser per process, started when it is first needed and again after it died.

Everything here runs on one asyncio loop (`runners.invocation.event_loop`). Playwright is imported
only when a browser is started, so that processes that merely list tools do not load it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners import metrics
from runners.browser.pool.chromium import Chromium, find_chromium, launch_args, wants_sandbox
from runners.browser.pool.driver import browser_environment, start_driver
from runners.browser.pool.fallback_font import write_fontconfig
from runners.browser.pool.temp_home import BrowserHome, sweep_homes
from runners.browser.session.session import OpenBrowserSession
from runners.browser.tracing.trace import TraceFolder
from runners.errors import PageCrashed
from runners.trust_level import TrustLevel

if TYPE_CHECKING:
    from playwright.async_api import Browser, CDPSession, Playwright

logger = logging.getLogger(__name__)

LAUNCH_SECONDS = 60.0
_FILE_PATH = re.compile(r"/\S+")
PING_SECONDS = 10.0
CLOSE_SECONDS = 5.0


class BrowserRuntime:
    """The process's browser and its Playwright driver; it opens sessions."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._home: BrowserHome | None = None
        self._driver: Playwright | None = None
        self._browser: Browser | None = None
        self._cdp: CDPSession | None = None
        self.launches = 0
        self._traces = TraceFolder()

    async def open_session(
        self,
        *,
        run_id: str,
        trust: TrustLevel,
        max_tabs: int = 20,
        storage: Mapping[str, Any] | None = None,
    ) -> OpenBrowserSession:
        """Open a session for a run, with the given cookies and storage; the caller closes it.

        Its first tab starts the browser. A session outlives the browser: after a PageCrashed, its
        next tab starts a new one.
        """
        return OpenBrowserSession(
            self.browser,
            run_id=run_id,
            trust=trust,
            max_tabs=max_tabs,
            storage=storage,
            traces=self._traces,
        )

    async def browser(self) -> Browser:
        """Return a browser that responds; start it, or start it again, if necessary.

        Raises:
            ChromiumMissing: No browser is installed; the message says how to install one.
            PageCrashed: A browser is installed, but it does not start.
        """
        async with self._lock:
            if self._browser is not None and await self._responds():
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
        """Close browser and driver and delete their files. The runtime can then be used again."""
        async with self._lock:
            await self._discard()

    async def _responds(self) -> bool:
        """Return whether the browser replies; a killed driver gives no other sign."""
        if self._browser is None or self._cdp is None or not self._browser.is_connected():
            return False
        try:
            await asyncio.wait_for(self._cdp.send("Browser.getVersion"), PING_SECONDS)
        except Exception as error:  # noqa: BLE001  (any error means that the browser did not reply)
            logger.warning("the browser does not respond (%s); restarting it", type(error).__name__)
            return False
        return True

    async def _launch(self) -> Browser:
        chromium = await asyncio.to_thread(find_chromium)
        await asyncio.to_thread(sweep_homes)
        self._home = BrowserHome()
        home = self._home.path
        self._traces.path = home / "traces"
        try:
            async with asyncio.timeout(LAUNCH_SECONDS):
                self._driver = await start_driver(home)
                browser = await self._start(self._driver, chromium, home)
                self._cdp = await browser.new_browser_cdp_session()
        except BaseException as error:
            await asyncio.shield(self._discard())
            if not isinstance(error, Exception):
                raise
            message = _FILE_PATH.sub("…", str(error).partition("\n")[0])
            logger.warning("Chromium (%s) did not start: %s", chromium.source, message)
            raise PageCrashed("Chromium did not start; `manage.py doctor` reports why.") from None
        self.launches += 1
        return browser

    async def _start(self, driver: Playwright, chromium: Chromium, home: Path) -> Browser:
        sandbox = wants_sandbox()
        try:
            browser = await self._start_with(driver, chromium, home, sandbox=sandbox)
        except Exception as error:
            if not sandbox or "sandbox" not in str(error).lower():
                raise
            logger.warning(
                "Chromium's sandbox cannot run on this machine; starting Chromium without it"
            )
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
            env={**browser_environment(TMPDIR=str(home), FONTCONFIG_FILE=str(fonts))},
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
        self._browser = self._driver = self._home = self._cdp = None
        # A browser or driver that does not close in time is killed with its directory.
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
    """Return the runtime of this process.

    To be used on `runners.invocation.event_loop.get_loop()` only.
    """
    return _runtimes.setdefault(os.getpid(), BrowserRuntime())


def count_open_pages() -> int:
    """Return how many pages this process has open; starts no browser. Safe from any thread."""
    runtime = _runtimes.get(os.getpid())
    return runtime.count_pages() if runtime else 0
