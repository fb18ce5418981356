"""Click in a Chromium with the extension on pages that change meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from runners.actions.judged import JudgedElement, JudgeRequest
from runners.errors import ToolFailed
from runners.tools.base import ExpectedElement
from tests.support.browser.changing_page_clicks import Clicker
from tests.support.extension.devtools import DevTools
from tests.support.extension.extension_browser import extension_browser
from tests.support.extension.extension_fixtures import ExtensionTask, pair
from tests.support.extension.extension_server import extension_server


class ExtensionClicker(Clicker):
    """An agent with a tab of its own, in a paired browser."""

    def __init__(self, task: ExtensionTask) -> None:
        self.task = task
        self.tab_id = self._opened = 0
        self._page: DevTools | None = None

    async def open(self, url: str) -> None:
        """Open a page in the tab."""
        await asyncio.to_thread(self._open, url)

    def _open(self, url: str) -> None:
        self.close()
        self._opened += 1
        address = f"{url}?{self.task.task_id}-{self._opened}"  # no other tab has it
        self.task.start(address, reuseExistingTab=True)
        self.tab_id, self._page = self.task.tab_id, self.task.browser.page(address)

    def close(self) -> None:
        """End the connection of the test to the page."""
        if self._page is not None:
            self._page.close()

    async def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page; None if the page navigates meanwhile."""
        assert self._page is not None
        with contextlib.suppress(AssertionError):
            return await asyncio.to_thread(self._page.evaluate, expression)

    async def judge(self, request: JudgeRequest) -> JudgedElement:
        """Return what the page says of the element."""
        asked = asdict(request)
        params = {name: asked[name] for name in ("locator", "purpose", "way", "to", "point")}
        params |= {"tabId": request.tab_id, "locateMs": request.locate_ms}
        answer = await asyncio.to_thread(self.task.perform, "browser_judge", params)
        if answer["status"] == "error":
            raise ToolFailed(answer["error"]["message"], details=answer["error"]["details"])
        return JudgedElement.model_validate(answer["result"])

    async def press(self, args: dict[str, Any], expected: ExpectedElement) -> dict[str, Any] | None:
        """Click the element that was judged; return the error, if any."""
        judged = {"node": expected.node, "compares": expected.compares}
        answer = await asyncio.to_thread(
            self.task.perform, "browser_click", args, judged=judged, timeoutMs=5_000
        )
        if answer["status"] == "success":
            return None
        error: dict[str, Any] = answer["error"]
        return {**error, "errorCode": error["code"]}


@contextlib.asynccontextmanager
async def extension_clickers(tabs: int) -> AsyncIterator[Sequence[Clicker]]:
    """Yield agents in a Chromium with the extension."""
    with (
        tempfile.TemporaryDirectory() as folder,
        extension_server() as server,
        extension_browser(Path(folder) / "profile") as browser,
    ):
        await asyncio.to_thread(pair, browser, server)
        clickers = [ExtensionClicker(ExtensionTask(browser, server)) for _ in range(tabs)]
        try:
            yield clickers
        finally:
            for clicker in clickers:
                clicker.close()
