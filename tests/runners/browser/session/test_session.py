"""A run's session: its tabs are leased, shared, released and always closed."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

import pytest

from runners.errors import PageCrashed
from runners.network.egress import EgressPolicy
from tests.support.browser.forbidden_server import egress_policy_allowing
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageResponse, PageServer, html
from tests.support.runs.waiting import wait_until


async def pages_of(reader: Reader) -> int:
    async with reader.session.tab() as tab:
        return len(tab.page.context.pages)


@pytest.mark.slow
def test_one_tab_reads_one_page_after_the_other(reader: Reader, page_server: PageServer) -> None:
    titles = [reader(page_server.url(path))["title"] for path in ("/plain", "/other", "/plain")]
    assert titles == ["Plain", "Other", "Plain"]
    assert reader.wait(pages_of(reader)) == 1


@pytest.mark.slow
def test_never_more_than_max_tabs_are_open(
    open_reader: Callable[..., Reader], page_server: PageServer
) -> None:
    read = open_reader(max_tabs=2)
    open_pages: list[int] = []

    async def hold() -> None:
        async with read.session.tab() as tab:
            await tab.page.goto(page_server.url("/plain"))
            open_pages.append(len(tab.page.context.pages))
            await asyncio.sleep(0.05)

    async def all_at_once() -> None:
        await asyncio.gather(*(hold() for _ in range(7)))

    read.wait(all_at_once())
    assert len(open_pages) == 7
    assert max(open_pages) == 2


@pytest.mark.slow
def test_tabs_of_a_session_share_cookies_and_sessions_do_not(
    open_reader: Callable[..., Reader], page_server: PageServer
) -> None:
    page_server.add("/set", html("<title>set</title>", headers={"Set-Cookie": "k=v"}))
    page_server.add(
        "/show", "<p id=p></p><script>p.textContent = `cookie: ${document.cookie}.`</script>"
    )
    one, other = open_reader(), open_reader()
    one(page_server.url("/set"))
    assert "cookie: k=v." in one.text(page_server.url("/show"))
    assert "cookie: ." in other.text(page_server.url("/show"))


def test_a_canceled_read_leaves_a_session_that_works(
    open_reader: Callable[..., Reader], page_server: PageServer
) -> None:
    read = open_reader(max_tabs=1)
    rng = random.Random(7)

    async def cancel_after(seconds: float, path: str) -> None:
        reading = asyncio.create_task(read.reading(page_server.url(path), screenshot=True))
        await asyncio.sleep(seconds)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    for path in ("/never", "/half", "/long-poll", "/late-busy-loop", "/script-rendered"):
        for seconds in (0.0, 0.005, rng.uniform(0, 0.3)):
            read.wait(cancel_after(seconds, path))
    assert read(page_server.url("/plain"))["title"] == "Plain"
    assert read.wait(pages_of(read)) == 1


@pytest.mark.slow
def test_a_page_whose_close_the_browser_lost_is_closed_again(
    open_reader: Callable[..., Reader], page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = open_reader(max_tabs=1)
    read(page_server.url("/plain"))

    async def lose_the_close() -> int:
        (tab,) = read.session.open_tabs()
        page, context = tab.page, tab.page.context

        async def wait_for_close(**_: object) -> None:
            await page.wait_for_event("close")

        monkeypatch.setattr(page, "close", wait_for_close)
        await tab.close()
        return len(context.pages)

    assert read.wait(lose_the_close()) == 0
    assert read(page_server.url("/other"))["title"] == "Other"


@pytest.mark.slow
def test_a_crashed_page_is_reported_and_replaced(reader: Reader, page_server: PageServer) -> None:
    async def crash_while_reading() -> None:
        reading = asyncio.create_task(reader.reading(page_server.url("/long-poll")))
        while not page_server.hits["/api/never"]:
            await asyncio.sleep(0.02)
        (tab,) = reader.session.open_tabs() or reader.session._tabs
        cdp = await tab.page.context.new_cdp_session(tab.page)
        asyncio.ensure_future(cdp.send("Page.crash")).add_done_callback(lambda f: f.exception())
        await reading

    with pytest.raises(PageCrashed):
        reader.wait(crash_while_reading())
    assert reader(page_server.url("/plain"))["title"] == "Plain"
    assert reader.session.renewals == 0


def test_a_closed_session_gives_no_tab_and_may_be_closed_again(
    reader: Reader, page_server: PageServer
) -> None:
    reader(page_server.url("/plain"))
    reader.wait(reader.session.close())
    reader.wait(reader.session.close())
    assert isinstance(reader.failure(page_server.url("/plain")), PageCrashed)


def test_closing_a_session_ends_its_reads(reader: Reader, page_server: PageServer) -> None:
    async def close_while_reading() -> float:
        reading = asyncio.create_task(reader.reading(page_server.url("/half")))
        await asyncio.sleep(0.3)
        started_at = time.monotonic()
        await reader.session.close()
        with pytest.raises(PageCrashed):
            await reading
        return time.monotonic() - started_at

    assert reader.wait(close_while_reading()) < 5


@pytest.mark.slow
def test_a_page_that_hangs_after_it_was_read_costs_the_next_one_only_a_retry(
    open_reader: Callable[..., Reader], page_server: PageServer
) -> None:
    read = open_reader(max_tabs=1)
    ask = "const ask = new XMLHttpRequest(); ask.open('GET', '/hangs', false); ask.send()"
    later = f"<title>L</title><p>x<script>setTimeout(() => {{ {ask}; for (;;); }}, 800)</script>"
    page_server.add("/hangs", "")
    assert read(page_server.add("/later", later))["title"] == "L"
    wait_until(lambda: page_server.hits["/hangs"])
    failure = read.failure(page_server.url("/plain"))
    assert (failure.code, failure.retryable) == ("PAGE_CRASHED", True)
    assert read(page_server.url("/plain"))["title"] == "Plain"


def test_a_screenshot_is_stored_when_requested(reader: Reader, page_server: PageServer) -> None:
    assert "screenshotArtifactId" not in reader(page_server.url("/plain"))
    page = reader(page_server.url("/plain"), screenshot=True)
    ((kind, mime_type, data),) = reader.saved
    assert (kind, mime_type, page["screenshotArtifactId"]) == ("screenshot", "image/jpeg", "art_1")
    assert data.startswith(b"\xff\xd8\xff")
    assert data.endswith(b"\xff\xd9")


def test_a_screenshot_masks_secret_fields_and_leaves_the_page_unchanged(
    reader: Reader, page_server: PageServer
) -> None:
    def page(path: str, name: str, value: str) -> str:
        field = f"<input style='font:60px monospace' name={name} value={value}>"
        return page_server.add(path, f"<body style='margin:0'>{field}")

    # Wide characters: without fonts they are boxes of another width than the mask's characters.
    secret = page("/secret", "api_token", "日日日日8888")
    pages = page("/other", "api_token", "AAAA1111"), page("/visible", "city", "日日日日8888")
    for url in (secret, pages[0], secret, pages[1]):
        reader(url, screenshot=True)
    _, other, same, visible = [data for _, _, data in reader.saved]
    assert same == other != visible
    assert reader.elements(secret)[0]["state"] == {"value": "***"}


@pytest.mark.slow
def test_service_workers_run_where_their_requests_are_checked_too(
    open_reader: Callable[..., Reader],
    open_remote_reader: Callable[[EgressPolicy], Reader],
    page_server: PageServer,
) -> None:
    page_server.add("/worker.js", PageResponse(b"", mime="text/javascript"))
    register = """<script>navigator.serviceWorker.register('/worker.js')
      .then((r) => { document.title = r ? 'registered' : 'refused' },
            () => { document.title = 'refused' })</script>"""
    url = page_server.add("/register", f"<title>-</title>{register}")

    async def title_for(reader: Reader) -> str:
        async with reader.session.tab() as tab:
            await tab.page.goto(url)
            await tab.page.wait_for_function("document.title !== '-'")
            return await tab.page.title()

    local, outside = (
        open_reader(),
        open_remote_reader(egress_policy_allowing(page_server.server_port)),
    )
    assert local.wait(title_for(local)) == outside.wait(title_for(outside)) == "registered"
