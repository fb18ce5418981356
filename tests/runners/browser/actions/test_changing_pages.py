"""Clicks on pages that change at every moment hit the judged element, or nothing.

`python -m tests.benchmarks.hostile_clicks` makes ten thousand.
"""

from __future__ import annotations

import time
from collections import Counter
from itertools import islice

import pytest

from tests.support.browser.changing_page_clicks import (
    Clicker,
    click_hostile,
    click_ordinary,
    hostile_urls,
)
from tests.support.browser.covering_frames import victim_server
from tests.support.browser.moving_pages import HOSTILE
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer

pytest_plugins = ["tests.support.browser.browser_fixtures"]
SECONDS = 60.0


def wrong_clicks(reader: Reader, server: PageServer, *, every: int, clicks: int) -> Counter[str]:
    """Click on every so many of the hostile pages; return the outcomes, and `wrong`."""
    with victim_server() as victim:
        urls = islice(hostile_urls(server, victim), 0, len(HOSTILE), every)
        until = time.monotonic() + SECONDS
        clicker = Clicker(reader.session)
        outcomes = reader.wait(click_hostile(clicker, urls, until, 10**6, clicks=clicks))
        outcomes["wrong"] = server.hits["/wrong"] + victim.hits["/landed"]
    return outcomes


def test_no_click_on_a_hostile_page_hits_anything_else(
    reader: Reader, page_server: PageServer
) -> None:
    outcomes = wrong_clicks(reader, page_server, every=21, clicks=1)
    assert outcomes["wrong"] == 0
    assert outcomes.total() == 2


@pytest.mark.slow
def test_no_click_at_any_moment_hits_anything_else(reader: Reader, page_server: PageServer) -> None:
    assert wrong_clicks(reader, page_server, every=1, clicks=2)["wrong"] == 0


@pytest.mark.slow
def test_a_click_that_nobody_checks_hits_something_else(
    reader: Reader, page_server: PageServer
) -> None:
    with victim_server() as victim:
        url = next(hostile_urls(page_server, victim))
        clicker = Clicker(reader.session)
        reader.wait(clicker.open(url))

        async def click() -> None:
            await clicker.evaluate("isOn = true")
            async with reader.session.run_tab() as tab:
                await tab.page.mouse.click(200, 130)

        reader.wait(click())
        assert page_server.hits["/wrong"] + victim.hits["/landed"] > 0


@pytest.mark.slow
def test_a_click_on_an_ordinary_page_that_moves_is_made(
    reader: Reader, page_server: PageServer
) -> None:
    outcomes = reader.wait(click_ordinary(Clicker(reader.session), page_server, every=5))
    assert outcomes == {"clicked": 10}
