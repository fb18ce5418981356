"""Click on pages that change meanwhile, as on pages that a person has confirmed a click for."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import cycle
from typing import Any, NamedTuple

from runners.actions.judged import (
    JudgedElement,
    JudgeRequest,
    expected_element,
    judge_request,
)
from runners.browser.session.session import OpenBrowserSession
from runners.errors import ToolFailed
from runners.invocation.invoke import invoke
from runners.invocation.judge import judge_element
from runners.tools.base import ExpectedElement, ToolCall, ToolContext
from tests.support.browser.covering_frames import frame_url
from tests.support.browser.moving_pages import (
    CHANGES,
    HOSTILE,
    NEXT,
    ORDINARY,
    hostile_page,
    ordinary_page,
)
from tests.support.browser.page_server import PageServer

CLICKS_ON_A_PAGE = 12
PAUSE = 0.5  # seconds in which an ordinary page moves, between the judging and the click
RESET = "typeof reset === 'function' && (isOn = false, reset(), true)"
Outcomes = Counter[tuple[str, str]]  # how often (kind of page, what became of the click)


class MovingPage(NamedTuple):
    """A page, what it does, and the element that is clicked."""

    kind: str
    url: str
    xpath: str = "//*[@id='keep']"


async def _no_artifact(data: bytes, *, name: str, mime_type: str, kind: str = "file") -> str:
    return "art_none"


class Clicker:
    """An agent with a tab of its own, in the worker's browser."""

    def __init__(self, session: OpenBrowserSession) -> None:
        self.session = session
        self.tab_id = 0

    async def open(self, url: str) -> None:
        """Open a page in the tab."""
        result = await invoke(ToolCall("task_start", {"url": url}), self._context())
        assert result.ok, result.error
        self.tab_id = dict(result.output or {})["tabId"]

    async def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        async with self.session.run_tab() as tab:
            return await tab.page.evaluate(expression)

    async def click(self, xpath: str, *, pause: float = 0.0, before: str = "") -> str:
        """Judge an element, evaluate `before`, and click it; return what became of it."""
        args: dict[str, Any] = {"tabId": self.tab_id, "xpath": xpath}
        request = judge_request("browser_click", args)
        assert request is not None
        try:
            judged = await self.judge(request)
        except ToolFailed as failure:
            return f"not judged: {failure.details.get('reason')}"
        await asyncio.sleep(pause)
        if before:
            await self.evaluate(before)
        error = await self.press(args, expected_element(request, judged, compares=True))
        if error is None:
            return "clicked"
        details = error["details"]
        return f"{details.get('effect')}: {details.get('reason', error['errorCode'])}"

    async def judge(self, request: JudgeRequest) -> JudgedElement:
        """Return what the page says of the element."""
        return await judge_element(request, self._context())

    async def press(self, args: dict[str, Any], expected: ExpectedElement) -> dict[str, Any] | None:
        """Click the element that was judged; return the error, if any."""
        context = replace(self._context(), judged=expected)
        result = await invoke(ToolCall("browser_click", args), context)
        return None if result.ok else dict(result.error or {})

    def _context(self) -> ToolContext:
        return ToolContext(
            run_id="run_bench",
            trust="local",
            deadline=time.monotonic() + 30,
            save_artifact=_no_artifact,
            emit=lambda type_, data: None,
            browser=self.session,
        )


def hostile_pages(server: PageServer, victim: PageServer) -> Iterator[MovingPage]:
    """Yield hostile pages, again and again; every other frame is cross-site."""
    server.add("/next", NEXT)
    for change in CHANGES:
        server.add(f"/wrong/{change.replace(' ', '_')}", "")
    hosts = cycle(["127.0.0.1", "localhost"])
    for number, (change, moment) in cycle(enumerate(HOSTILE)):
        page = hostile_page(change, moment, frame_url(victim, next(hosts)))
        yield MovingPage(change, server.add(f"/hostile/{number}", page))


def wrong_clicks(server: PageServer, victim: PageServer) -> Counter[str]:
    """Return how often anything else was clicked, by kind; `frame` are those in other origins."""
    hits = Counter({path: count for path, count in server.hits.items() if "/wrong/" in path})
    return hits + Counter({"frame of another origin": victim.hits["/landed"]})


async def click_hostile(
    clicker: Clicker,
    pages: Iterable[MovingPage],
    until: float,
    moves: int,
    *,
    clicks: int = CLICKS_ON_A_PAGE,
) -> Outcomes:
    """Click on one hostile page after another; return how often what became of a click."""
    outcomes: Outcomes = Counter()
    for page in pages:
        await clicker.open(page.url)
        for _ in range(clicks):
            if outcomes.total() >= moves or time.monotonic() > until:
                return outcomes
            if not await clicker.evaluate(RESET):
                break  # the page has navigated
            outcomes[page.kind, await clicker.click(page.xpath, before="isOn = true")] += 1
    return outcomes


def ordinary_pages(server: PageServer, *, every: int = 1) -> list[MovingPage]:
    """Return every so many of the ordinary pages."""
    return [
        MovingPage(
            f"{kind}, {speed} ms",
            server.add(f"/ordinary/{number}", ordinary_page(kind, speed)),
            "//*[@id='buy']",
        )
        for number, (kind, speed) in enumerate(ORDINARY[::every])
    ]


async def click_ordinary(clicker: Clicker, pages: Iterable[MovingPage]) -> Outcomes:
    """Click once on each page, half a second after the judging."""
    outcomes: Outcomes = Counter()
    for page in pages:
        await clicker.open(page.url)
        outcomes[page.kind, await clicker.click(page.xpath, pause=PAUSE)] += 1
    return outcomes
