"""Click on hostile pages, and count the clicks that hit something else; click on ordinary pages
that move, and count those that are refused.

A click is judged as one that a person confirmed, then made by `browser_click`, in the worker's
browser and in a Chromium with the extension, which makes every tenth click. Hostile pages move,
swap, cover, frame, rename or navigate at every moment (tests/support/browser/moving_pages.py); each
click moves the mouse at least once. Half of the 50 ordinary pages are HTML documents of installed
packages, if there are any (`apt-get install python3-doc nginx-doc` brings more), to which something
is added that moves. It ends after `--moves` clicks or `--seconds`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from runners.browser.pool.runtime import get_runtime
from runners.invocation.event_loop import get_loop
from tests.benchmarks.real_documents import real_documents
from tests.support.browser.changing_page_clicks import (
    Clicker,
    Outcomes,
    click_hostile,
    click_ordinary,
    hostile_pages,
    ordinary_pages,
    wrong_clicks,
)
from tests.support.browser.covering_frames import victim_server
from tests.support.browser.moving_pages import HOSTILE
from tests.support.browser.page_server import serve_pages
from tests.support.extension.extension_browser import find_full_chromium

CLICKS_ON_A_PAGE = 40  # at most; fewer if there are not that many for each hostile page
ORDINARY_PAGES = 50
SHARES = {"worker": (0.9, 0.8), "extension": (0.1, 0.2)}  # of the clicks and of the seconds
Clickers = Callable[[int], AbstractAsyncContextManager[Sequence[Clicker]]]


@asynccontextmanager
async def worker_clickers(tabs: int) -> AsyncIterator[Sequence[Clicker]]:
    """Yield agents in the worker's browser."""
    runtime = get_runtime()
    sessions = [
        await runtime.open_session(run_id="run_bench", trust="local", max_tabs=2)
        for _ in range(tabs)
    ]
    try:
        yield [Clicker(session) for session in sessions]
    finally:
        for session in sessions:
            await session.close()


async def measure(opening: Clickers, moves: int, seconds: float, tabs: int) -> dict[str, Any]:
    """Return what became of the clicks in one browser, and how many hit something else."""
    with serve_pages() as server, victim_server() as victim:
        pages, clicks = hostile_pages(server, victim), moves // len(HOSTILE)
        documents = real_documents(server, ORDINARY_PAGES // 2)
        moving = ordinary_pages(server, every=2 if documents else 1) + documents
        async with opening(tabs) as clickers:
            ordinary = await _together(
                click_ordinary(clicker, moving[at::tabs]) for at, clicker in enumerate(clickers)
            )
            before, started = wrong_clicks(server, victim), time.monotonic()
            hostile = await _together(
                click_hostile(
                    clicker,
                    pages,
                    started + seconds,
                    -(-moves // tabs),
                    clicks=min(CLICKS_ON_A_PAGE, max(1, clicks)),
                )
                for clicker in clickers
            )
            took = time.monotonic() - started
        wrong = wrong_clicks(server, victim) - before
        refused = Counter({at: count for at, count in ordinary.items() if at[1] != "clicked"})
        changed = Counter({at: count for at, count in refused.items() if "changed" in at[1]})
        return {
            "clicks": hostile.total(),
            "seconds": round(took),
            "wrong": wrong.total(),
            "wrong by kind": dict(wrong),
            "hostile": _by_kind(hostile),
            "ordinary pages": ordinary.total(),
            "documents": len(documents),
            "false changed": changed.total(),
            "refused on ordinary pages": refused.total(),
            "refused": _by_kind(refused),
        }


async def _together(clicking: Any) -> Outcomes:
    return sum(await asyncio.gather(*clicking), Counter())


def _by_kind(outcomes: Outcomes) -> dict[str, dict[str, int]]:
    kinds: dict[str, dict[str, int]] = defaultdict(dict)
    for (kind, outcome), count in sorted(outcomes.items()):
        kinds[kind][outcome] = count
    return dict(kinds)


def clickers_of(browser: str) -> Clickers:
    """Return what opens agents in a kind of browser."""
    if browser == "worker":
        return worker_clickers
    import django  # import late: its tables are not needed without the extension

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from tests.benchmarks.extension_clicks import extension_clickers

    return extension_clickers


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=2400.0)
    parser.add_argument("--tabs", type=int, default=4)
    parser.add_argument("--browser", choices=(*SHARES, "both"), default="both")
    given = parser.parse_args()
    browsers = SHARES if given.browser == "both" else {given.browser: (1.0, 1.0)}
    found: dict[str, Any] = {}
    for name, (of_moves, of_seconds) in browsers.items():
        if name == "extension" and not find_full_chromium():
            found[name] = "There is no full Chromium, which extensions need."
            continue
        moves, seconds = round(given.moves * of_moves), given.seconds * of_seconds
        measuring = measure(clickers_of(name), moves, seconds, given.tabs)
        found[name] = get_loop().submit(measuring).result()
    print(json.dumps(found, indent=1))  # per browser
    get_loop().submit(get_runtime().close()).result(30)


if __name__ == "__main__":
    main()
