"""Click on pages that change meanwhile, as on pages that a person has confirmed a click for."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from typing import Any

from runners.actions.judged import expected_element, judge_request
from runners.browser.session.session import OpenBrowserSession
from runners.errors import ToolFailed
from runners.invocation.invoke import invoke
from runners.invocation.judge import judge_element
from runners.tools.base import ToolCall, ToolContext
from tests.support.browser.covering_frames import frame_url
from tests.support.browser.moving_pages import (
    HOSTILE,
    NEXT,
    ORDINARY,
    hostile_page,
    ordinary_page,
)
from tests.support.browser.page_server import PageServer

CLICKS_ON_A_PAGE = 12


async def _no_artifact(data: bytes, *, name: str, mime_type: str, kind: str = "file") -> str:
    return "art_none"


class Clicker:
    """An agent with a tab of its own."""

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

    async def click(self, xpath: str, *, pause: float = 0.0, before: str = "0") -> str:
        """Judge a button, evaluate `before`, and click it; return what became of it."""
        args: dict[str, Any] = {"tabId": self.tab_id, "xpath": xpath}
        request = judge_request("browser_click", args)
        assert request is not None
        try:
            judged = await judge_element(request, self._context())
        except ToolFailed as failure:
            return f"not judged: {failure.details.get('reason')}"
        await asyncio.sleep(pause)
        await self.evaluate(before)
        expected = expected_element(request, judged, compares=True)
        context = replace(self._context(), judged=expected)
        result = await invoke(ToolCall("browser_click", args), context)
        if result.ok:
            return "clicked"
        details = (result.error or {}).get("details", {})
        return f"{details.get('effect')}: {details.get('reason')}"

    def _context(self) -> ToolContext:
        return ToolContext(
            run_id="run_bench",
            trust="local",
            deadline=time.monotonic() + 30,
            save_artifact=_no_artifact,
            emit=lambda type_, data: None,
            browser=self.session,
        )


def hostile_urls(server: PageServer, victim: PageServer) -> Iterator[str]:
    """Yield the addresses of hostile pages, again and again; every other frame is cross-site."""
    server.add("/next", NEXT)
    server.add("/wrong", "")
    hosts = cycle(["127.0.0.1", "localhost"])
    for number, (change, moment) in cycle(enumerate(HOSTILE)):
        page = hostile_page(change, moment, frame_url(victim, next(hosts)))
        yield server.add(f"/hostile/{number}", page)


async def click_hostile(
    clicker: Clicker,
    urls: Iterator[str],
    until: float,
    moves: int,
    *,
    clicks: int = CLICKS_ON_A_PAGE,
) -> Counter[str]:
    """Click on one hostile page after another; return how often what became of a click."""
    outcomes: Counter[str] = Counter()
    for url in urls:
        await clicker.open(url)
        for _ in range(clicks):
            if outcomes.total() >= moves or time.monotonic() > until:
                return outcomes
            if "/next" in await clicker.evaluate("location.pathname"):
                break
            await clicker.evaluate("isOn = false; reset()")
            outcomes[await clicker.click("//button[@id='keep']", before="isOn = true")] += 1
    return outcomes


async def click_ordinary(clicker: Clicker, server: PageServer, *, every: int = 1) -> Counter[str]:
    """Click once on every so many of the ordinary pages, half a second after the judging."""
    outcomes: Counter[str] = Counter()
    for number, (kind, speed) in enumerate(ORDINARY[::every]):
        await clicker.open(server.add(f"/ordinary/{number}", ordinary_page(kind, speed)))
        outcome = await clicker.click("//*[@id='buy']", pause=0.5)
        outcomes[outcome if outcome == "clicked" else f"{kind} {speed}: {outcome}"] += 1
    return outcomes
