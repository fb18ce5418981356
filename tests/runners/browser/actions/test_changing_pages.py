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
    hostile_pages,
    ordinary_pages,
    wrong_clicks,
)
from tests.support.browser.covering_frames import victim_server
from tests.support.browser.moving_pages import HOSTILE
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer

SECONDS = 60.0


def clicks_and_wrong(
    reader: Reader, server: PageServer, *, every: int, clicks: int
) -> tuple[int, Counter[str]]:
    """Click on every so many of the hostile pages; return how often, and the wrong ones."""
    with victim_server() as victim:
        pages = islice(hostile_pages(server, victim), 0, len(HOSTILE), every)
        until = time.monotonic() + SECONDS
        clicker = Clicker(reader.session)
        outcomes = reader.wait(click_hostile(clicker, pages, until, 10**6, clicks=clicks))
        return outcomes.total(), wrong_clicks(server, victim)


def test_no_click_on_a_hostile_page_hits_anything_else(
    reader: Reader, page_server: PageServer
) -> None:
    assert clicks_and_wrong(reader, page_server, every=21, clicks=1) == (2, Counter())


@pytest.mark.slow
def test_no_click_at_any_moment_hits_anything_else(reader: Reader, page_server: PageServer) -> None:
    assert clicks_and_wrong(reader, page_server, every=1, clicks=2)[1] == Counter()


@pytest.mark.slow
def test_a_click_that_nobody_checks_hits_something_else(
    reader: Reader, page_server: PageServer
) -> None:
    with victim_server() as victim:
        page = next(hostile_pages(page_server, victim))
        clicker = Clicker(reader.session)
        reader.wait(clicker.open(page.url))

        async def click() -> None:
            await clicker.evaluate("isOn = true")
            async with reader.session.run_tab() as tab:
                await tab.page.mouse.click(200, 130)

        reader.wait(click())
        assert wrong_clicks(page_server, victim)


@pytest.mark.slow
def test_a_click_on_an_ordinary_page_that_moves_is_made(
    reader: Reader, page_server: PageServer
) -> None:
    pages = ordinary_pages(page_server, every=5)
    outcomes = reader.wait(click_ordinary(Clicker(reader.session), pages))
    assert [outcome for _, outcome in outcomes] == ["clicked"] * 10
