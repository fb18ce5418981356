"""A task that works in a visible browser with the extension, before a person with a mouse."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.plugin.devtools import DevTools
from tests.support.plugin.extension_browser import (
    EXTENSION_ID,
    ExtensionBrowser,
    extension_browser,
)
from tests.support.plugin.extension_server import ExtensionServer, Message, extension_server
from tests.support.plugin.screen import Screen, virtual_screen

WAIT_SECONDS = 20.0
TASK = "task_1"
TITLE = "Compare the prices of three bicycles"
OVERLAY = "continuity-overlay"
OPTIONS = f"chrome-extension://{EXTENSION_ID}/options/options.html"
PAIR = "chrome.runtime.sendMessage({type: 'pair', server: %s, ticket: 'plt_0123456789'})"


@dataclass(slots=True)
class VisibleTask:
    """The task, its tab and the person before it."""

    screen: Screen
    browser: ExtensionBrowser
    server: ExtensionServer
    page: DevTools
    tab_id: int

    def perform(self, name: str, **params: Any) -> Message:
        """Perform an action of the agent and return its result, which has to be a success."""
        result = self.server.perform(name, {"tabId": self.tab_id, **params})
        assert result["status"] == "success", result.get("error")
        return result

    def status(self, status: str) -> None:
        """Send the task's status, as the server does when it changes."""
        self.server.send({"type": "task_status", "taskId": TASK, "status": status, "title": TITLE})

    def overlay_texts(self) -> list[str]:
        """Return the visible texts of the overlay, which is in a closed shadow root."""
        return [text for text, _ in self._overlay_nodes()]

    def wait_for_overlay(self, text: str) -> None:
        """Wait until the overlay shows a text; "" waits until it shows none."""
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            texts = self.overlay_texts()
            if (not texts) if not text else any(text in one for one in texts):
                return
            time.sleep(0.02)
        raise AssertionError(f"{text!r} is not in {self.overlay_texts()}")

    def press_button(self, label: str) -> None:
        """Click a button of the overlay with the real mouse, once it accepts clicks."""
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            for text, node in self._overlay_nodes():
                if text == label:
                    quad = self.page.send("DOM.getBoxModel", nodeId=node)["model"]["content"]
                    self.screen.click(self.page, sum(quad[0::2]) / 4, sum(quad[1::2]) / 4)
                    return
            time.sleep(0.02)
        raise AssertionError(f"no button {label!r}: {self.overlay_texts()}")

    def sent(self, kind: str) -> Message:
        """Wait for the first message of a type."""
        return self.server.wait_for(lambda message: message["type"] == kind)

    def _overlay_nodes(self) -> list[tuple[str, int]]:
        document = self.page.send("DOM.getDocument", depth=-1, pierce=True)["root"]
        found: list[tuple[str, int]] = []
        for host in _nodes(document, lambda node: node.get("localName") == OVERLAY):
            for root in host.get("shadowRoots", []):
                found += list(_texts(root))
        return found


def _nodes(node: Message, is_it: Any) -> Iterator[Message]:
    if is_it(node):
        yield node
    for name in ("children", "shadowRoots"):
        for child in node.get(name, []):
            yield from _nodes(child, is_it)


def _texts(node: Message) -> Iterator[tuple[str, int]]:
    """Yield the text and the id of each element that has text and no hidden element around it."""
    attributes = node.get("attributes", [])
    if "hidden" in attributes[0::2]:
        return
    children = node.get("children", [])
    text = "".join(child["nodeValue"] for child in children if child["nodeType"] == 3).strip()
    if text:
        yield text, node["nodeId"]
    for child in children:
        yield from _texts(child)


@contextlib.contextmanager
def visible_task(folder: Path, html: str, *arguments: str) -> Iterator[VisibleTask]:
    """Start a browser, and a task in a tab of it that is in front."""
    with virtual_screen() as screen, extension_server() as server:
        server.files.files["/page"] = html.encode()
        url = f"http://127.0.0.1:{server.files.server_port}/page"
        with extension_browser(folder / "profile", *arguments, display=screen.display) as browser:
            server.tasks = [{"taskId": TASK, "status": "running", "title": TITLE, "tabIds": []}]
            options = browser.page(OPTIONS)  # opened when the extension was installed
            options.evaluate(PAIR % json.dumps(server.origin))
            options.close()
            started = server.perform("task_start", {"url": url})
            assert started["status"] == "success", started
            tab_id = started["result"]["tabId"]
            browser.evaluate(f"chrome.tabs.update({tab_id}, {{active: true}})")
            page = browser.page(url)
            yield VisibleTask(screen, browser, server, page, tab_id)
            page.close()
