"""Measure each browser action against the same action with raw Playwright and the DevTools
protocol, on the same page in the same browser, in turn.

The floor is what an engineer would write with Playwright for the same answer: `task_start` goto
until the page is parsed, then its title and status (the answer has the title, a warning the
status); `wait_for_loaded` asks the page for its state, because the answer requires a page that
responds, not the driver's last known state; `screenshot` a JPEG with secret fields covered; the
readers (`readability_extract`, `dom_index`, `xpath_scan`, `get_html`) evaluate the script of the
action itself; `click` and `type` locate by a selector, then Playwright's click, or select_text and
keyboard.type; `debugger_attach` opens a protocol session.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Awaitable, Callable
from typing import Any

from playwright.async_api import Page

from runners.browser.actions.browser_readability_extract import WHOLE_TEXT
from runners.browser.page_scripts import action_script, cover_script, reader_script
from runners.browser.pool.runtime import get_runtime
from runners.browser.session.session import OpenBrowserSession
from runners.browser.tabs.task_tab import task_tabs
from runners.invocation.event_loop import get_loop
from runners.invocation.invoke import invoke
from runners.tools.base import ToolCall, ToolContext
from tests.benchmarks.rounds import alternate, ratio, report, spread
from tests.support.browser.page_server import serve_pages

ITEMS, TEXT = 60, "a line of 20 letters"
PAGE = "<title>Shop</title><h1>Shop</h1><input id=name aria-label=Name>" + "".join(
    f"<p>Item {at}, <a href='#{at}'>more about it</a> <button id=b{at}>Buy {at}</button></p>"
    for at in range(ITEMS)
)
INDEX = {"mode": "mark", "scope": "document", "attribute": "data-mimo_click_id", "firstId": 1}
Action = Callable[[], Awaitable[object]]


async def no_artifact(data: bytes, *, name: str, mime_type: str, kind: str = "file") -> str:
    """Store nothing."""
    return "art_none"


class Bench:
    """Both sides: an agent's interactor on a task's tab, and raw Playwright on a separate page."""

    def __init__(self, session: OpenBrowserSession, page: Page, url: str) -> None:
        self.session, self.page, self.url = session, page, url
        self.tab_id = self.button = self.field = 0

    async def act(self, name: str, **args: Any) -> dict[str, Any]:
        """Do an action as the engine does."""
        context = ToolContext(
            run_id="run_bench",
            trust="local",
            deadline=time.monotonic() + 60,
            save_artifact=no_artifact,
            emit=lambda type_, data: None,
            browser=self.session,
        )
        if name != "task_start":
            args["tabId"] = self.tab_id
        result = await invoke(ToolCall(name, args), context)
        assert result.ok, result.error
        return dict(result.output or {})

    async def prepare(self) -> None:
        """Open the page on both sides and number its elements."""
        self.tab_id = (await self.act("task_start", url=self.url))["tabId"]
        await self.act("browser_debugger_attach")
        elements = (await self.act("browser_dom_index"))["elements"]
        click_ids = {element.get("text"): element["clickId"] for element in elements}
        self.button, self.field = click_ids["Buy 30"], click_ids["Name"]
        await self.page.goto(self.url)

    async def start(self) -> None:
        """Open the page with raw Playwright and read what `task_start` returns: address, title and
        status."""
        answer = await self.page.goto(self.url, wait_until="domcontentloaded")
        assert answer is not None
        assert (answer.status, await self.page.title(), self.page.url) == (200, "Shop", self.url)

    async def script(self, function: str, argument: object) -> None:
        """Evaluate one of our scripts in a raw page."""
        await self.page.evaluate(function, argument)

    async def screenshot(self) -> None:
        """Take a raw screenshot with the secret fields covered."""
        await self.page.evaluate(cover_script(), True)
        await self.page.screenshot(type="jpeg", quality=60)

    async def type(self) -> None:
        """Type with raw Playwright."""
        await self.page.locator("#name").select_text()
        await self.page.keyboard.type(TEXT)
        await self.page.locator("#name").input_value()

    async def attach(self) -> None:
        """Open a raw protocol session."""
        await self.page.context.new_cdp_session(self.page)

    async def _reattach(self) -> None:
        tabs = task_tabs(self.session)
        assert tabs is not None
        tabs.current.detach()
        await self.act("browser_debugger_attach")

    def pairs(self) -> dict[str, tuple[Action, Action]]:
        """Return ours and the floor by action."""
        return {
            "task_start": (
                lambda: self.act("task_start", url=self.url, reuseExistingTab=True),
                self.start,
            ),
            "browser_debugger_attach": (self._reattach, self.attach),
            "browser_wait_for_loaded": (
                lambda: self.act("browser_wait_for_loaded"),
                lambda: self.script("() => document.readyState", None),
            ),
            "browser_screenshot": (lambda: self.act("browser_screenshot"), self.screenshot),
            "browser_click": (
                lambda: self.act("browser_click", clickId=self.button),
                lambda: self.page.click("#b30"),
            ),
            "browser_type": (
                lambda: self.act("browser_type", clickId=self.field, text=TEXT),
                self.type,
            ),
            **{
                name: self._by_script(name, *arguments)
                for name, arguments in self._readers().items()
            },
        }

    def _by_script(self, name: str, function: str, argument: object) -> tuple[Action, Action]:
        return lambda: self.act(name), lambda: self.script(function, argument)

    @staticmethod
    def _readers() -> dict[str, tuple[str, object]]:
        """Return the script and the argument of each action that only evaluates a script."""
        options = {
            "settle": {"parseMs": 30_000, "idleMs": 3000},
            "waitFor": None,
            "extract": WHOLE_TEXT.model_dump(by_alias=True),
        }
        html = {"xpath": None, "maxLength": 1 << 24}
        actor = action_script()
        return {
            "browser_readability_extract": (reader_script(), options),
            "browser_dom_index": (actor, {"command": "index", "args": INDEX}),
            "browser_xpath_scan": (actor, {"command": "index", "args": {**INDEX, "mode": "scan"}}),
            "browser_get_html": (actor, {"command": "markup", "args": html}),
        }


async def open_bench(url: str) -> Bench:
    """Open a session for ours, and a page for the floor in the same browser."""
    runtime = get_runtime()
    session = await runtime.open_session(run_id="run_bench", trust="local")
    page = await (await runtime.browser()).new_page(viewport={"width": 1280, "height": 720})
    bench = Bench(session, page, url)
    await bench.prepare()
    return bench


def milliseconds_of(action: Action, times: int) -> float:
    """Call a function this many times and return the median milliseconds of a call."""

    async def do() -> float:
        durations = []
        for _ in range(times):
            started = time.perf_counter()
            await action()
            durations.append(time.perf_counter() - started)
        return sorted(durations)[len(durations) // 2] * 1000

    return get_loop().submit(do()).result()


def main() -> None:
    """Measure every action, or those named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("actions", nargs="*")
    parser.add_argument("--times", type=int, default=10)
    args = parser.parse_args()
    with serve_pages() as server:
        bench = get_loop().submit(open_bench(server.add("/shop", PAGE))).result()
        for name, (ours, floor) in bench.pairs().items():
            if args.actions and name not in args.actions:
                continue
            get_loop().submit(bench.prepare()).result()
            for action in (ours, floor):
                milliseconds_of(action, 3)  # warm up
            durations = alternate(
                {
                    "ours": lambda action=ours: milliseconds_of(action, args.times),  # type: ignore[misc]
                    "floor": lambda action=floor: milliseconds_of(action, args.times),  # type: ignore[misc]
                }
            )
            report(
                "browser_actions",
                action=name,
                unit="ms",
                ours=spread(durations["ours"]),
                floor=spread(durations["floor"]),
                ratio=ratio(durations["ours"], durations["floor"]),
            )
        get_loop().submit(bench.session.close()).result()
    get_loop().submit(get_runtime().close()).result()


if __name__ == "__main__":
    main()
