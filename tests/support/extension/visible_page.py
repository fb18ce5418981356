"""A page in a visible browser with the extension, as the person before it sees and uses it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.extension.devtools import DevTools
from tests.support.extension.extension_browser import EXTENSION_ID, ExtensionBrowser
from tests.support.extension.screen import Screen

WAIT_SECONDS = 20.0
OVERLAY = "continuity-overlay"
OPTIONS = f"chrome-extension://{EXTENSION_ID}/options/options.html"
Node = dict[str, Any]


def pair(browser: ExtensionBrowser, server: str, ticket: str) -> None:
    """Pair the browser on the extension's page, which was opened when it was installed."""
    message = json.dumps({"type": "pair", "server": server, "ticket": ticket})
    options = browser.page(OPTIONS)
    answer = options.evaluate(f"chrome.runtime.sendMessage({message})")
    options.close()
    assert answer["ok"], answer


@dataclass(slots=True)
class VisiblePage:
    """The page of a task's tab, which is in front, and the person's screen."""

    screen: Screen
    browser: ExtensionBrowser
    page: DevTools

    def overlay_texts(self) -> list[str]:
        """Return the visible texts of the overlay."""
        return overlay_texts(self.page)

    def wait_for_overlay(self, text: str, seconds: float = WAIT_SECONDS) -> None:
        """Wait until the overlay shows a text; "" waits until it shows none."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            texts = self.overlay_texts()
            if (not texts) if not text else any(text in one for one in texts):
                return
            time.sleep(0.02)
        raise AssertionError(f"{text!r} is not in {self.overlay_texts()}")

    def wait_until_drawn(self) -> None:
        """Wait until the tab's page has the focus and the browser shows a frame of it: a browser
        drops input before that.
        """
        self.page.evaluate(
            "new Promise((drawn) => { const look = () => document.hasFocus() ? drawn()"
            " : requestAnimationFrame(look); requestAnimationFrame(look); })"
        )
        self.page.send("Page.captureScreenshot")  # of what the browser shows

    def press_button(self, label: str) -> None:
        """Click a button of the overlay with the real mouse, once it accepts clicks."""
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            for text, node in _overlay_nodes(self.page):
                if text == label and not self._is_disabled(node):
                    quad = self.page.send("DOM.getBoxModel", nodeId=node)["model"]["content"]
                    self.screen.click(self.page, sum(quad[0::2]) / 4, sum(quad[1::2]) / 4)
                    return
            time.sleep(0.02)
        raise AssertionError(f"no button {label!r}: {self.overlay_texts()}")

    def _is_disabled(self, node: int) -> bool:
        attributes: list[str] = self.page.send("DOM.getAttributes", nodeId=node)["attributes"]
        return "disabled" in attributes[0::2]


def overlay_texts(page: DevTools) -> list[str]:
    """Return the visible texts of a page's overlay, which is in a closed shadow root."""
    return [text for text, _ in _overlay_nodes(page)]


def _overlay_nodes(page: DevTools) -> list[tuple[str, int]]:
    document = page.send("DOM.getDocument", depth=-1, pierce=True)["root"]
    found: list[tuple[str, int]] = []
    for host in _nodes(document, lambda node: node.get("localName") == OVERLAY):
        for root in host.get("shadowRoots", []):
            found += list(_texts(root))
    return found


def _nodes(node: Node, is_it: Any) -> Iterator[Node]:
    if is_it(node):
        yield node
    for name in ("children", "shadowRoots"):
        for child in node.get(name, []):
            yield from _nodes(child, is_it)


def _texts(node: Node) -> Iterator[tuple[str, int]]:
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
