"""Open a URL and read its document: when a page is ready, and when reading fails."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from runners.actions.own_pages import check_shown_page, page_to_open
from runners.browser.errors import (
    ContextLost,
    browser_lost,
    no_answer,
    unfinished_page,
    unreadable_document,
)
from runners.browser.parameters import RESERVE_SECONDS, ExtractOptions, WaitCondition
from runners.browser.session.tab import Tab
from runners.errors import (
    ConditionNotMet,
    InvalidTarget,
    NavigationFailed,
    NavigationTimeout,
    ToolFailed,
)
from runners.tools.base import ToolContext
from runners.untrusted_text import fence_page

PARSE_SECONDS = 30.0
IDLE_SECONDS = 3.0
ANSWER_SECONDS = 6.0  # for reading the document itself, on a machine under load
MAX_DOCUMENTS = 8
GRACE_SECONDS = 0.1  # a form is submitted by a separate task shortly after its button is clicked

_UNSETTLED = {
    "loading": "The page was still loading after 3 s and was read as it was.",
    "network": "The page was still requesting data after 3 s and was read as it was.",
    "changing": "The page was still changing after 3 s and was read as it was.",
    "hanging": "The page's script hung; it was terminated and the page was read as it was.",
    "moving": "The page kept navigating to other documents and was read as it was.",
}


@dataclass(frozen=True, slots=True)
class PageReader:
    """Reads pages until a deadline.

    Attributes:
        deadline: `time.monotonic()` value at which all waiting ends.
        grace: seconds in which an earlier click may still start a navigation; 0 if there was none.
        condition_name: how the caller calls `wait_for`, for errors.
    """

    extract: ExtractOptions
    wait_for: WaitCondition | None
    deadline: float
    grace: float = GRACE_SECONDS
    condition_name: str = "waitFor"

    async def open_and_read(self, tab: Tab, url: str) -> dict[str, Any]:
        """Open `url` in the tab and return what was read, with `warnings`.

        Raises:
            NavigationTimeout: The page was not parsed in 30 s, hung, or the condition did not
                become true in its time.
            NavigationFailed, PageCrashed, InvalidTarget, ToolFailed: As the browser reports.
        """
        started = time.monotonic()
        parse_by = min(started + PARSE_SECONDS, self.deadline - RESERVE_SECONDS)
        try:
            await tab.navigate(url, seconds=parse_by - started)
        except NavigationFailed as failure:
            if failure.details.get("netError") != "ERR_HTTP_RESPONSE_CODE_FAILURE":
                raise
            status = await tab.status_of(url, seconds=parse_by - time.monotonic())
            return _empty_page(url, status, self.extract)
        return await self._read_page(tab, url, parse_by)

    async def read_current(self, tab: Tab) -> dict[str, Any]:
        """Read what the tab shows, after a navigation started by earlier input has finished.

        Raises:
            NavigationTimeout: The next document did not load; or as `open_and_read`.
            PageCrashed, InvalidTarget, ToolFailed: As `open_and_read`.
        """
        parse_by = min(time.monotonic() + PARSE_SECONDS, self.deadline - RESERVE_SECONDS)
        await wait_for_next_document(tab, parse_by, grace=self.grace)
        documents = tab.documents
        page = await self._read_page(tab, tab.page.url, parse_by, stays=not tab.is_leaving)
        if tab.is_leaving and tab.documents == documents:
            # A script started a navigation during the read.
            await wait_for_next_document(tab, parse_by)
            page = await self._read_page(tab, tab.page.url, parse_by)
        return page

    async def _read_page(
        self, tab: Tab, url: str, parse_by: float, *, stays: bool = False
    ) -> dict[str, Any]:
        try:
            answer = await self._read_final_document(tab, parse_by, stays=stays)
        except NavigationTimeout:
            await tab.stop_loading()
            raise
        blocked = await tab.blocked_warnings()
        tab.mark_settled()
        page = self._page_of(answer, url)
        status = page["httpStatus"] or 200
        http_error = [f"The server answered with HTTP status {status}."] if status >= 400 else []
        unsettled = [_UNSETTLED[key] for key in (answer["settled"],) if key in _UNSETTLED]
        page["warnings"] = http_error + unsettled + blocked
        return page

    async def _read_final_document(
        self, tab: Tab, parse_by: float, *, stays: bool
    ) -> dict[str, Any]:
        """Read the document at which the page's own navigations end.

        Args:
            stays: the navigation that the first document started, if any, produced no document.
        """
        met_by = time.monotonic() + (self.wait_for.timeout_ms / 1000 if self.wait_for else 0.0)
        for visit in range(MAX_DOCUMENTS):
            is_patient = visit < MAX_DOCUMENTS / 2
            options = self._options(
                parse_by, met_by, idle_seconds=IDLE_SECONDS if is_patient else 0.0
            )
            options["settle"]["stays"] = stays and visit == 0
            try:
                answer = await self._read_once(tab, options, parse_by, met_by)
                return answer if is_patient else {**answer, "settled": "moving"}
            except ContextLost:
                tab.reset_parsed()
            except TimeoutError:
                return await self._read_hanging(tab, options)
        raise NavigationFailed(
            "The page keeps navigating to other addresses.",
            details={"reason": "keeps_navigating", "url": tab.requested_url},
        )

    async def _read_once(
        self, tab: Tab, options: dict[str, Any], parse_by: float, met_by: float
    ) -> dict[str, Any]:
        started = time.monotonic()

        def seconds_left() -> float:
            now = time.monotonic()
            end = parse_by
            if tab.parsed_at is not None:
                parsed_at = max(tab.parsed_at, started)  # it may have been parsed long before
                end = max(parsed_at + IDLE_SECONDS, met_by) + ANSWER_SECONDS
            return min(end, self.deadline) - now

        text = await tab.read(options, seconds_left)
        answer: dict[str, Any] = json.loads(text)
        return answer

    async def _read_hanging(self, tab: Tab, options: dict[str, Any]) -> dict[str, Any]:
        """Terminate the script of a page that did not answer, and read the page without waiting."""
        if tab.parsed_at is None:
            raise unfinished_page(tab.requested_url)
        await tab.terminate_script()
        immediate = {**options, "waitFor": None, "settle": {"parseMs": 0, "idleMs": 0}}
        end = min(time.monotonic() + ANSWER_SECONDS / 2, self.deadline)
        try:
            answer = json.loads(await tab.read(immediate, lambda: end - time.monotonic()))
        except (ContextLost, TimeoutError):
            raise NavigationTimeout(
                "The page's script hangs, and the page cannot be read.",
                details={"url": tab.requested_url},
            ) from None
        return {**answer, "settled": "hanging"}

    def _options(self, parse_by: float, met_by: float, *, idle_seconds: float) -> dict[str, Any]:
        now = time.monotonic()
        idle = min(idle_seconds, max(0.0, self.deadline - RESERVE_SECONDS - now))
        condition = self.wait_for
        return {
            "settle": {"parseMs": _milliseconds(parse_by - now), "idleMs": _milliseconds(idle)},
            "waitFor": condition
            and {
                "type": condition.type,
                "value": condition.value,
                "timeoutMs": _milliseconds(min(met_by, self.deadline - RESERVE_SECONDS) - now),
            },
            "extract": self.extract.model_dump(by_alias=True),
        }

    def _page_of(self, answer: dict[str, Any], url: str) -> dict[str, Any]:
        """Return the page of an answer, or raise the failure that it means."""
        outcome = answer["outcome"]
        if outcome == "read":
            page: dict[str, Any] = answer["page"]
            return page
        failure: ToolFailed = unfinished_page(url)
        if outcome == "bad_selector":
            failure = InvalidTarget(
                f"{self.condition_name}.value is not a valid CSS selector.", details={"url": url}
            )
        elif outcome == "unreadable":
            failure = unreadable_document(answer["contentType"], url)
        elif outcome == "unmet" and self.wait_for is not None:
            failure = _unmet(self.wait_for, self.condition_name, answer, url)
        raise failure


@contextlib.asynccontextmanager
async def opened_page(
    ctx: ToolContext,
    url: str,
    extract: ExtractOptions | None = None,
    wait_for: WaitCondition | None = None,
) -> AsyncIterator[tuple[Tab, dict[str, Any]]]:
    """Open a URL in a tab of its own; return the tab, with Playwright's `page`, and what was read.

    The page is read once it has loaded, as `PageReader.open_and_read` does.

    Raises:
        InvalidTarget: It is no http or https URL.
        AddressNotAllowed: It is, or redirects to, an address that the caller may not read.
        OwnPage: It is, or redirects to, one of the product's own pages.
        PageCrashed, NavigationFailed, NavigationTimeout, ToolFailed: As the browser reports.
    """
    address = page_to_open(url, ctx.trust)
    if ctx.browser is None:
        raise browser_lost()
    async with ctx.browser.tab() as tab:
        reader = PageReader(extract or ExtractOptions(), wait_for, ctx.deadline)
        page = await reader.open_and_read(tab, address)
        # A redirect may have led to an address whose content this caller may not read.
        check_shown_page(page["url"], ctx.trust)
        yield tab, page


async def wait_for_next_document(tab: Tab, until: float, *, grace: float = GRACE_SECONDS) -> None:
    """Wait for the navigation that a click or a key started, if any.

    Raises:
        NavigationTimeout: No document was committed by `until` (a `time.monotonic()` value).
        PageCrashed: The page is lost.
    """
    documents, began = tab.documents, time.monotonic()
    await asyncio.sleep(grace)
    while tab.documents == documents and tab.is_leaving:
        if time.monotonic() >= until:
            raise no_answer(
                tab.page.url, time.monotonic() - began, what="The server of the next page"
            )
        await asyncio.sleep(0.02)


def _unmet(
    condition: WaitCondition, name: str, answer: dict[str, Any], url: str
) -> ConditionNotMet:
    """Return the failure for a condition that did not become true, with what the page shows."""
    kind = f"{condition.type} “{condition.value}”" if condition.value else condition.type
    message = (
        f"The condition {name} ({kind[:200]}) did not become true within"
        f" {condition.timeout_ms / 1000:g} s."
    )
    details = {
        "url": url,
        "condition": name,
        name: condition.model_dump(by_alias=True),
        "shown": fence_page(answer["shown"], url),
    }
    if answer["changing"]:
        message += " Something kept changing: details.changing."
        details["changing"] = [fence_page(text, url) for text in answer["changing"]]
    return ConditionNotMet(message, details=details)


def _milliseconds(seconds: float) -> int:
    return max(0, round(seconds * 1000))


def _empty_page(url: str, status: int | None, extract: ExtractOptions) -> dict[str, Any]:
    """Return the result for an error response without a body, for which the browser shows its own
    error page.
    """
    page = {"url": url, "title": "", "type": "error", "summary": ""}
    info = {"page": page, "elements": [], "totalElements": 0, "truncated": False}
    return {
        "url": url,
        "title": "",
        "pageType": "error",
        "elementCount": 0,
        "contentSections": 0,
        "content": {"sections": [], "truncated": False} if extract.content else None,
        "pageInfo": info if extract.page_info else None,
        "httpStatus": status,
        "warnings": [f"The server answered with HTTP status {status} and an empty page."],
    }
