"""A Chromium with the extension, connected to a server of the tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.support.extension.extension_browser import (
    ExtensionBrowser,
    extension_browser,
    find_full_chromium,
)
from tests.support.extension.extension_server import ExtensionServer, Message, extension_server

_task_numbers = itertools.count(1)
RECONNECT = 'chrome.alarms.create("reconnect", {when: Date.now()})'


def pair(browser: ExtensionBrowser, server: ExtensionServer) -> None:
    """Give the extension a pairing with the server, as the options page does."""
    pairing = f'{{server: "{server.origin}", clientId: "plc_test", secret: "secret-0"}}'
    browser.evaluate(f"chrome.storage.local.set({{pairing: {pairing}}})")
    browser.evaluate(RECONNECT)
    server.wait_for_extension()


class ExtensionTask:
    """A task in the browser; the caller names actions without the prefix `browser_`."""

    def __init__(self, browser: ExtensionBrowser, server: ExtensionServer) -> None:
        self.browser, self.server = browser, server
        self.task_id = f"task_{next(_task_numbers)}"
        self.tab_id = 0
        self.url = ""

    def start(self, url: str, **params: Any) -> Message:
        """Open the task's tab."""
        self.url = url
        answer = self.perform("task_start", {"url": url, **params})
        assert answer["status"] == "success", answer.get("error", answer)
        self.tab_id = answer["result"]["tabId"]
        return answer

    def perform(self, name: str, params: Mapping[str, Any], **more: Any) -> Message:
        """Perform an action and return its result message."""
        return self.server.perform(name, params, task_id=self.task_id, **more)

    def __call__(self, name: str, **params: Any) -> dict[str, Any]:
        """Perform an action that must succeed; return its result, with its warnings if any."""
        answer = self.perform(f"browser_{name}", {"tabId": self.tab_id, **params})
        assert answer["status"] == "success", answer.get("error", answer)
        warnings = {"warnings": answer["warnings"]} if "warnings" in answer else {}
        return {**answer["result"], **warnings}

    def error(self, name: str, **params: Any) -> dict[str, Any]:
        """Perform an action that must fail, and return its error."""
        answer = self.perform(f"browser_{name}", {"tabId": self.tab_id, **params})
        assert answer["status"] == "error", answer
        error: dict[str, Any] = answer["error"]
        return error

    def index(self) -> dict[str, int]:
        """Return the clickIds of the usable elements, by text."""
        elements = self("dom_index")["elements"]
        return {element.get("text", ""): element["clickId"] for element in elements}

    def current_url(self) -> str:
        """Return the address of the task's current tab."""
        tabs = self.perform("browser_list_tabs", {})["result"]["tabs"]
        return next(str(tab["url"]) for tab in tabs if tab.get("current"))

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        page = self.browser.page(self.url)
        try:
            return page.evaluate(expression)
        finally:
            page.close()


@pytest.fixture(scope="session")
def shared_extension(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[ExtensionBrowser, ExtensionServer]]:
    """Yield a browser and the server that it is paired with, shared by the tests of a process."""
    if find_full_chromium() is None:
        pytest.skip("There is no full Chromium, which extensions need.")
    profile = tmp_path_factory.mktemp("extension") / "profile"
    with extension_server() as server, extension_browser(profile) as browser:
        pair(browser, server)
        yield browser, server
        assert server.invalid == []


@pytest.fixture
def own_extension(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[ExtensionBrowser, ExtensionServer]]:
    """Yield a browser of this test alone, and the server that it is paired with."""
    if find_full_chromium() is None:
        pytest.skip("There is no full Chromium, which extensions need.")
    profile = tmp_path_factory.mktemp("extension") / "profile"
    with extension_server() as server, extension_browser(profile) as browser:
        pair(browser, server)
        yield browser, server
        assert server.invalid == []


@pytest.fixture
def extension_task(
    shared_extension: tuple[ExtensionBrowser, ExtensionServer],
) -> Iterator[ExtensionTask]:
    """Yield a task of its own in the shared browser; its tabs are closed afterwards."""
    task = ExtensionTask(*shared_extension)
    yield task
    task.browser.evaluate("globalThis.restoreDebugger?.()")
    task.perform("task_stop", {"closeTab": True})
