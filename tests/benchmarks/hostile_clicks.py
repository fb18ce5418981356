"""Click on hostile pages, and count the clicks that hit something else; click on ordinary pages
that move, and count those that are refused.

A click is judged as one that a person confirmed, then made by `browser_click`. Hostile pages move,
swap, cover, frame, rename or navigate at every moment (tests/support/browser/moving_pages.py); each
click moves the mouse at least once. It ends after `--moves` clicks or `--seconds`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from typing import Any

from runners.browser.pool.runtime import get_runtime
from runners.invocation.event_loop import get_loop
from tests.support.browser.changing_page_clicks import (
    Clicker,
    click_hostile,
    click_ordinary,
    hostile_urls,
)
from tests.support.browser.covering_frames import victim_server
from tests.support.browser.page_server import serve_pages


async def measure(moves: int, seconds: float, tabs: int) -> dict[str, Any]:
    """Return what became of the clicks, and how many hit something else."""
    runtime = get_runtime()
    with serve_pages() as server, victim_server() as victim:
        urls = hostile_urls(server, victim)
        sessions = [
            await runtime.open_session(run_id="run_bench", trust="local", max_tabs=2)
            for _ in range(tabs)
        ]
        clickers = [Clicker(session) for session in sessions]
        until = time.monotonic() + seconds
        try:
            counts = await asyncio.gather(
                *(click_hostile(clicker, urls, until, -(-moves // tabs)) for clicker in clickers)
            )
            ordinary = await click_ordinary(clickers[0], server)
        finally:
            for session in sessions:
                await session.close()
        hostile = sum(counts, Counter[str]())
        return {
            "clicks": hostile.total(),
            "wrong": server.hits["/wrong"] + victim.hits["/landed"],
            "hostile": dict(hostile),
            "ordinary": dict(ordinary),
            "refused_of_ordinary": ordinary.total() - ordinary["clicked"],
        }


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=1500.0)
    parser.add_argument("--tabs", type=int, default=4)
    given = parser.parse_args()
    measuring = measure(given.moves, given.seconds, given.tabs)
    print(json.dumps(get_loop().submit(measuring).result()))
    get_loop().submit(get_runtime().close()).result(30)


if __name__ == "__main__":
    main()
