"""A task that works in a visible browser with the extension, before a person with a mouse."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.extension.extension_browser import extension_browser
from tests.support.extension.extension_server import ExtensionServer, Message, extension_server
from tests.support.extension.screen import virtual_screen
from tests.support.extension.visible_page import VisiblePage, pair

TASK = "task_1"
TITLE = "Compare the prices of three bicycles"


@dataclass(slots=True)
class VisibleTask(VisiblePage):
    """The task, its tab and the person before it."""

    server: ExtensionServer
    tab_id: int

    def perform(self, name: str, **params: Any) -> Message:
        """Perform an action of the agent and return its result, which has to be a success."""
        result = self.server.perform(name, {"tabId": self.tab_id, **params})
        assert result["status"] == "success", result.get("error")
        return result

    def status(self, status: str) -> None:
        """Send the task's status, as the server does when it changes."""
        self.server.send({"type": "task_status", "taskId": TASK, "status": status, "title": TITLE})

    def sent(self, kind: str) -> Message:
        """Wait for the first message of a type."""
        return self.server.wait_for(lambda message: message["type"] == kind)


@contextlib.contextmanager
def visible_task(folder: Path, html: str, *arguments: str) -> Iterator[VisibleTask]:
    """Start a browser, and a task in a tab of it that is in front."""
    with virtual_screen() as screen, extension_server() as server:
        server.files.files["/page"] = html.encode()
        url = f"http://127.0.0.1:{server.files.server_port}/page"
        with extension_browser(folder / "profile", *arguments, display=screen.display) as browser:
            server.tasks = [{"taskId": TASK, "status": "running", "title": TITLE, "tabIds": []}]
            pair(browser, server.origin, "plt_0123456789")
            started = server.perform("task_start", {"url": url})
            assert started["status"] == "success", started
            tab_id = started["result"]["tabId"]
            browser.evaluate(f"chrome.tabs.update({tab_id}, {{active: true}})")
            page = browser.page(url)
            yield VisibleTask(screen, browser, page, server, tab_id)
            page.close()
