"""Open a URL in a task's tab, or go back, and wait for the document (page/document_ready.js)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

from runners.browser.errors import ContextLost
from runners.browser.session.tab import Tab
from runners.errors import InvalidTarget, NavigationFailed, NavigationTimeout, PageCrashed

EMPTY_RESPONSE = "ERR_HTTP_RESPONSE_CODE_FAILURE"
POLL_SECONDS = 0.03


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
    return await _arrive(tab, until=until)


async def go_back(
    tab: Tab, *, until: float, check_url: Callable[[str], None]
) -> tuple[str, list[str]]:
    """Go back in the tab's history, wait until the document is parsed, and return its title and
    warnings.

    Args:
        until: a `time.monotonic()` value.
        check_url: raises if the page of this URL must not be opened.

    Raises:
        InvalidTarget: The tab showed no page before; details.effect is `none`.
        NavigationTimeout: The earlier page did not load in time; details.effect is `unknown`.
        AddressNotAllowed, PageCrashed, ToolFailed: As `Tab.navigate`.
    """
    current, entries = await _history(tab, until)
    earlier = entries[current - 1] if current > 0 else {"url": ""}
    if not earlier["url"].startswith(("http:", "https:")):
        raise InvalidTarget("The tab showed no page before this one.", details={"effect": "none"})
    check_url(earlier["url"])
    try:
        await _command(tab, "Page.navigateToHistoryEntry", until, {"entryId": earlier["id"]})
        while not await _has_left(tab, current, until):
            await asyncio.sleep(POLL_SECONDS)
        return await _arrive(tab, until=until)
    except TimeoutError:
        await tab.stop_loading()
        raise NavigationTimeout(
            "The earlier page did not load in time.",
            details={"url": earlier["url"], "effect": "unknown"},
        ) from None
    except NavigationTimeout as late:
        late.details["effect"] = "unknown"
        raise


async def _history(tab: Tab, until: float) -> tuple[int, list[dict[str, Any]]]:
    history = await _command(tab, "Page.getNavigationHistory", until)
    return history["currentIndex"], history["entries"]


async def _has_left(tab: Tab, entry: int, until: float) -> bool:
    """Return whether the tab shows another history entry, of a page or of a state of its page."""
    try:
        return (await _history(tab, until))[0] != entry
    except PageCrashed:
        if not tab.is_alive:
            raise
        return False  # the browser does not answer while it exchanges the page


async def _command(
    tab: Tab, method: str, until: float, params: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Send a command of the DevTools protocol; a TimeoutError means that the time is up."""
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    answer: dict[str, Any] = await tab.perform(tab.cdp.send(method, params or {}), seconds=seconds)
    return answer


async def _arrive(tab: Tab, *, until: float) -> tuple[str, list[str]]:
    try:
        document = await wait_for_document(tab, wholly=False, until=until)
    except NavigationTimeout:
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
        PageCrashed, ToolFailed: The page is lost.
    """
    while True:
        try:
            text = await tab.wait_for_document(wholly, lambda: until - time.monotonic())
        except ContextLost:
            continue
        except TimeoutError:
            raise NavigationTimeout(
                "The page was not loaded in time.", details={"url": tab.page.url}
            ) from None
        document: dict[str, Any] = json.loads(text)
        return document


def _seconds_left(until: float) -> float:
    return max(0.1, until - time.monotonic())
