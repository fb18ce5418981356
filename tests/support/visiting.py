"""A person at a browser, who looks at pages of the product."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from playwright.async_api import Page

from runners.loop import LoopThread

PATIENCE_MS = 60_000


class Visitor:
    """A person at a browser; what pages complain about is kept."""

    def __init__(self, loop: LoopThread, page: Page, address: str) -> None:
        self._loop, self.page, self.address = loop, page, address
        self.complaints: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: dialog.accept())

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Wait for something to be done in the browser."""
        return self._loop.submit(work).result(60)

    def open(self, path: str) -> None:
        """Go to a page."""
        self.do(self.page.goto(self.address + path))

    def sees(self, selector: str) -> None:
        """Wait until something is there to be seen."""
        self.do(self.page.wait_for_selector(selector))

    def click(self, selector: str) -> None:
        """Click on something."""
        self.do(self.page.click(selector))
