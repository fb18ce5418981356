"""Waiting for the document of a task's tab (page/arrived.js)."""

from __future__ import annotations

import json
import time
from typing import Any

from runners.browser.errors import ContextLost
from runners.browser.session.tab import Tab
from runners.errors import NavigationFailed, NavigationTimeout

EMPTY_ANSWER = "ERR_HTTP_RESPONSE_CODE_FAILURE"


async def open_address(tab: Tab, url: str, *, until: float) -> tuple[str, list[str]]:
    """Open an address, wait until its document is parsed, at most until a `time.monotonic()`, and
    return its title, and warnings.

    Raises:
        NavigationTimeout, NavigationFailed, PageCrashed, InvalidTarget, AddressNotAllowed,
            ToolFailed: as `Tab.go`.
    """
    try:
        await tab.navigate(url, seconds=_left(until))
    except NavigationFailed as failure:
        if failure.details.get("netError") != EMPTY_ANSWER:
            raise
        status = await tab.status_of(url, seconds=_left(until))
        return "", [f"The server answered with HTTP status {status} and an empty page."]
    try:
        told = await wait_for_document(tab, wholly=False, until=until)
    except NavigationTimeout:
        await tab.stop_loading()
        raise
    blocked = await tab.blocked_warnings()
    tab.mark_settled()
    status = told["status"] or 200
    said = [f"The server answered with HTTP status {status}."] if status >= 400 else []
    return " ".join(str(told["title"]).split()), said + blocked


async def wait_for_document(tab: Tab, *, wholly: bool, until: float) -> dict[str, Any]:
    """Wait until the tab's document is parsed, or loaded `wholly`; return its title and status.

    Raises:
        NavigationTimeout: It was not by `until`, or a script of it hangs.
        PageCrashed, ToolFailed: The page is lost.
    """
    while True:
        try:
            text = await tab.wait_for_document(wholly, lambda: until - time.monotonic())
        except ContextLost:
            continue
        except TimeoutError:
            raise NavigationTimeout(
                "The page had not loaded in time.", details={"url": tab.page.url}
            ) from None
        told: dict[str, Any] = json.loads(text)
        return told


def _left(until: float) -> float:
    return max(0.1, until - time.monotonic())
