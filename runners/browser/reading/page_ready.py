"""Open a URL in a task's tab and wait for its document (page/document_ready.js)."""

from __future__ import annotations

import json
import time
from typing import Any

from runners.browser.errors import ContextLost, unfinished_page
from runners.browser.session.tab import Tab
from runners.errors import NavigationFailed, NavigationTimeout

EMPTY_RESPONSE = "ERR_HTTP_RESPONSE_CODE_FAILURE"


async def open_address(tab: Tab, url: str, *, until: float) -> tuple[str, list[str]]:
    """Open a URL, wait until its document is parsed, and return its title and warnings.

    `until` is a `time.monotonic()` value.

    Raises:
        NavigationTimeout, NavigationFailed, PageCrashed, InvalidTarget, AddressNotAllowed,
            ToolFailed: As `Tab.navigate`.
    """
    try:
        await tab.navigate(url, seconds=_seconds_left(until))
    except NavigationFailed as failure:
        if failure.details.get("netError") != EMPTY_RESPONSE:
            raise
        status = await tab.status_of(url, seconds=_seconds_left(until))
        return "", [f"The server answered with HTTP status {status} and an empty page."]
    return await arrive(tab, until=until)


async def arrive(tab: Tab, *, until: float) -> tuple[str, list[str]]:
    """Wait until the document to which the tab navigated is parsed; return its title and warnings.

    Raises:
        NavigationTimeout, NavigationFailed, PageCrashed, AddressNotAllowed, ToolFailed: As
            `open_address`.
    """
    try:
        document = await wait_for_document(tab, wholly=False, until=until)
    except (NavigationTimeout, NavigationFailed):
        await tab.stop_loading()
        raise
    blocked = await tab.blocked_warnings()
    tab.mark_settled()
    status = document["status"] or 200
    http_error = [f"The server answered with HTTP status {status}."] if status >= 400 else []
    return " ".join(str(document["title"]).split()), http_error + blocked


async def wait_for_document(tab: Tab, *, wholly: bool, until: float) -> dict[str, Any]:
    """Wait until the tab's document is parsed, or `wholly` loaded; return its title and status.

    Raises:
        NavigationTimeout: It was not by `until`, or its script hangs.
        NavigationFailed: The connection closed in the middle of the document.
        PageCrashed, ToolFailed: The page is lost.
    """
    while True:
        try:
            text = await tab.wait_for_document(wholly, lambda: until - time.monotonic())
        except ContextLost:
            continue
        except TimeoutError:
            raise unfinished_page(tab.page.url) from None
        document: dict[str, Any] = json.loads(text)
        return document


def _seconds_left(until: float) -> float:
    return max(0.1, until - time.monotonic())
