"""A user with a browser who opens pages of the product."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

from runners.browser.pool.chromium import find_chromium, launch_args, wants_sandbox
from runners.browser.pool.fallback_font import write_fontconfig
from runners.invocation.event_loop import LoopThread

TIMEOUT_MS = 60_000


class Visitor:
    """A user with a browser; `page_errors` collects the errors of pages, also what their
    Content-Security-Policy blocked.
    """

    def __init__(self, loop: LoopThread, page: Page, address: str) -> None:
        self._loop, self.page, self.address = loop, page, address
        self.page_errors: list[str] = []
        page.set_default_timeout(TIMEOUT_MS)
        page.on("pageerror", lambda error: self.page_errors.append(str(error)))
        page.on("console", self._collect_violation)
        page.on("dialog", lambda dialog: dialog.accept())

    def _collect_violation(self, message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            self.page_errors.append(message.text)

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the browser's loop and return its result."""
        return self._loop.submit(work).result(60)

    def sign_in(self, path: str) -> None:
        """Sign in with a one-time link, then open a blank page."""
        self.open(path)
        self.do(self.page.wait_for_url("**/admin/"))
        self.do(self.page.goto("about:blank"))

    def sign_out(self) -> None:
        """Forget the session; the language stays."""
        self.do(self.page.context.clear_cookies(name="continuity_session"))

    def open(self, path: str) -> None:
        """Open a page."""
        self.do(self.page.goto(self.address + path))

    def wait_for(self, selector: str) -> None:
        """Wait until the element is visible."""
        self.do(self.page.wait_for_selector(selector))

    def click(self, selector: str) -> None:
        """Click the element."""
        self.do(self.page.click(selector))

    def fill(self, selector: str, text: str) -> None:
        """Fill a field."""
        self.do(self.page.fill(selector, text))

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements that match the selector."""
        texts: list[str] = self.do(self.page.locator(selector).all_inner_texts())
        return texts


@contextmanager
def open_visitor(loop: LoopThread, address: str) -> Iterator[Visitor]:
    """Yield a user with a separate browser; check at the end that no page reported an error."""

    async def launch() -> tuple[Any, Browser, Visitor]:
        driver = await async_playwright().start()
        browser = await driver.chromium.launch(
            executable_path=str(find_chromium().path),
            env={**os.environ, "FONTCONFIG_FILE": str(write_fontconfig(Path(folder)))},
            args=launch_args(),
            chromium_sandbox=wants_sandbox(),
        )
        context = await browser.new_context()  # of it a test can open further tabs
        return driver, browser, Visitor(loop, await context.new_page(), address)

    async def leave(driver: Any, browser: Browser) -> None:
        await browser.close()
        await driver.stop()

    with tempfile.TemporaryDirectory() as folder:
        driver, browser, person = loop.submit(launch()).result(60)
        try:
            yield person
        finally:
            person.do(leave(driver, browser))
    assert person.page_errors == []
