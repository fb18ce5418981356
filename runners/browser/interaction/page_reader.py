"""Open an address and read its document: when it is ready, and when to give up (runs.md)."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

from runners.browser.errors import ContextLost, unreadable_document
from runners.browser.parameters import RESERVE_SECONDS, ExtractOptions, WaitCondition
from runners.browser.session.tab import Tab
from runners.errors import InvalidTarget, NavigationFailed, NavigationTimeout, ToolFailed

PARSE_SECONDS = 30.0
IDLE_SECONDS = 3.0
ANSWER_SECONDS = 6.0  # for the reading itself, on a machine under load
MAX_DOCUMENTS = 8
GRACE_SECONDS = 0.1  # a form is sent by a task of its own, a moment after its button is pressed

_UNSETTLED = {
    "loading": "The page was still loading after 3 s and was read as it stood.",
    "network": "The page was still requesting data after 3 s and was read as it stood.",
    "changing": "The page was still changing after 3 s and was read as it stood.",
    "hanging": "A script of the page hung; it was stopped and the page was read as it stood.",
    "moving": "The page kept sending its reader on, and was read as it stood.",
}


@dataclass(frozen=True, slots=True)
class PageReader:
    """What to read, and until when.

    Attributes:
        deadline: `time.monotonic()` value after which nothing is waited for.
        grace: seconds in which a press may still send the present page on; 0 where none was made.
    """

    extract: ExtractOptions
    wait_for: WaitCondition | None
    deadline: float
    grace: float = GRACE_SECONDS

    async def of(self, tab: Tab, url: str) -> dict[str, Any]:
        """Open `url` in the tab and return the page's reading, with `warnings`.

        Raises:
            NavigationTimeout: It was not parsed in 30 s, hung, or the condition was not met in its
                time.
            NavigationFailed, PageCrashed, InvalidTarget, ToolFailed: as the browser reports it.
        """
        began = time.monotonic()
        parse_by = min(began + PARSE_SECONDS, self.deadline - RESERVE_SECONDS)
        try:
            await tab.navigate(url, seconds=parse_by - began)
        except NavigationFailed as failure:
            if failure.details.get("netError") != "ERR_HTTP_RESPONSE_CODE_FAILURE":
                raise
            status = await tab.status_of(url, seconds=parse_by - time.monotonic())
            return _empty_page(url, status, self.extract)
        return await self._read_on(tab, url, parse_by)

    async def of_present(self, tab: Tab) -> dict[str, Any]:
        """Return the reading of what the tab shows, once what was done there has had its effect.

        Raises:
            NavigationTimeout: The page was sent on, and the next one did not arrive; or as `of`.
            PageCrashed, InvalidTarget, ToolFailed: as `of`.
        """
        parse_by = min(time.monotonic() + PARSE_SECONDS, self.deadline - RESERVE_SECONDS)
        await wait_for_next_document(tab, parse_by, grace=self.grace)
        documents = tab.documents
        page = await self._read_on(tab, tab.page.url, parse_by, stays=not tab.is_leaving)
        if tab.is_leaving and tab.documents == documents:
            # A script sent the page on while it was waited for.
            await wait_for_next_document(tab, parse_by)
            page = await self._read_on(tab, tab.page.url, parse_by)
        return page

    async def _read_on(
        self, tab: Tab, url: str, parse_by: float, *, stays: bool = False
    ) -> dict[str, Any]:
        try:
            answer = await self._read(tab, parse_by, stays=stays)
        except NavigationTimeout:
            await tab.stop_loading()
            raise
        blocked = await tab.blocked_warnings()
        tab.mark_settled()
        page = self._page_of(answer, url)
        status = page["httpStatus"] or 200
        said = [f"The server answered with HTTP status {status}."] if status >= 400 else []
        unsettled = [_UNSETTLED[key] for key in (answer["settled"],) if key in _UNSETTLED]
        page["warnings"] = said + unsettled + blocked
        return page

    async def _read(self, tab: Tab, parse_by: float, *, stays: bool) -> dict[str, Any]:
        """Read the document that is there in the end: pages may send their reader on to another.
        `stays`: nothing comes of what the first one asked for so far.
        """
        met_by = time.monotonic() + (self.wait_for.timeout_ms / 1000 if self.wait_for else 0.0)
        for visit in range(MAX_DOCUMENTS):
            is_patient = visit < MAX_DOCUMENTS / 2
            options = self._options(
                parse_by, met_by, idle_seconds=IDLE_SECONDS if is_patient else 0.0
            )
            options["settle"]["stays"] = stays and visit == 0
            try:
                answer = await self._ask(tab, options, parse_by, met_by)
                return answer if is_patient else {**answer, "settled": "moving"}
            except ContextLost:
                tab.reset_parsed()
            except TimeoutError:
                return await self._ask_hanging(tab, options)
        raise NavigationFailed(
            "The page keeps sending its reader on to another address.",
            details={"reason": "keeps_navigating", "url": tab.requested_url},
        )

    async def _ask(
        self, tab: Tab, options: dict[str, Any], parse_by: float, met_by: float
    ) -> dict[str, Any]:
        began = time.monotonic()

        def seconds_left() -> float:
            now = time.monotonic()
            end = parse_by
            if tab.parsed_at is not None:
                parsed_at = max(tab.parsed_at, began)  # a page may be read long after it came
                end = max(parsed_at + IDLE_SECONDS, met_by) + ANSWER_SECONDS
            return min(end, self.deadline) - now

        text = await tab.read(options, seconds_left)
        answer: dict[str, Any] = json.loads(text)
        return answer

    async def _ask_hanging(self, tab: Tab, options: dict[str, Any]) -> dict[str, Any]:
        """End the script that hangs in a page which did not answer, and ask again, at once."""
        if tab.parsed_at is None:
            raise _too_late("The page was not loaded in time.", tab)
        await tab.terminate_script()
        at_once = {**options, "waitFor": None, "settle": {"parseMs": 0, "idleMs": 0}}
        end = min(time.monotonic() + ANSWER_SECONDS / 2, self.deadline)
        try:
            answer = json.loads(await tab.read(at_once, lambda: end - time.monotonic()))
        except (ContextLost, TimeoutError):
            raise _too_late(
                "A script of the page hangs, and the page cannot be read.", tab
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
        """Return the page of an answer, or raise what the answer means."""
        outcome = answer["outcome"]
        if outcome == "read":
            page: dict[str, Any] = answer["page"]
            return page
        failure: ToolFailed = NavigationTimeout(
            "The page was not loaded in time.", details={"url": url}
        )
        if outcome == "bad_selector":
            failure = InvalidTarget("waitFor.value is not a CSS selector.", details={"url": url})
        elif outcome == "unreadable":
            failure = unreadable_document(answer["contentType"], url)
        elif outcome == "unmet" and self.wait_for is not None:
            failure = NavigationTimeout(
                "What was waited for did not come true in its time.",
                details={"url": url, "waitFor": self.wait_for.model_dump(by_alias=True)},
            )
        raise failure


async def wait_for_next_document(tab: Tab, until: float, *, grace: float = GRACE_SECONDS) -> None:
    """Wait while a document is on its way that a press or a key asked for.

    Raises:
        NavigationTimeout: It did not begin to arrive by `until` (`time.monotonic()` seconds).
        PageCrashed: The page is lost.
    """
    documents = tab.documents
    await asyncio.sleep(grace)
    while tab.documents == documents and tab.is_leaving:
        if time.monotonic() >= until:
            raise NavigationTimeout(
                "The page was sent on, and the next one did not arrive in time.",
                details={"url": tab.page.url},
            )
        await asyncio.sleep(0.02)


def _milliseconds(seconds: float) -> int:
    return max(0, round(seconds * 1000))


def _too_late(message: str, tab: Tab) -> NavigationTimeout:
    return NavigationTimeout(message, details={"url": tab.requested_url})


def _empty_page(url: str, status: int | None, extract: ExtractOptions) -> dict[str, Any]:
    """Return the reading of an error answer without a body; the browser shows its own page."""
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
