"""A page puts a frame of another origin under the mouse: no input reaches that frame."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.browser.covering_frames import (
    COVER_WHEN,
    covering_page,
    frame_url,
    victim_server,
)
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.task_page import TaskPage, start_on_markup


@pytest.fixture
def victim() -> Iterator[PageServer]:
    """Yield the server of the page that is shown in a frame; it counts what reaches that page."""
    with victim_server() as server:
        yield server


def click_button(page: TaskPage) -> str:
    """Click the page's button; return `clicked`, or the effect that the error reports."""
    result = page.read.call("browser_click", tabId=page.tab_id, xpath="//button")
    return "clicked" if result.error is None else str(result.error["details"]["effect"])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"], ids=["same_site", "cross_site"])
def test_a_frame_that_comes_under_the_mouse_gets_no_press(
    reader: Reader, page_server: PageServer, victim: PageServer, host: str
) -> None:
    markup = covering_page(frame_url(victim, host), COVER_WHEN["pointermove"])
    page = start_on_markup(reader, page_server, markup)
    outcome = click_button(page)
    assert victim.hits["/landed"] == 0
    assert (outcome == "clicked") == any(one.startswith("click:more") for one in page.log)


def test_a_frame_of_another_origin_ignores_input(
    reader: Reader, page_server: PageServer, victim: PageServer
) -> None:
    start_on_markup(reader, page_server, covering_page(frame_url(victim, "localhost"), "cover()"))

    async def click() -> None:
        async with reader.session.run_tab() as tab:
            await tab.page.frames[1].wait_for_load_state()
            await tab.page.mouse.click(200, 130)
            await tab.page.keyboard.press("Enter")

    reader.wait(click())
    assert victim.hits["/landed"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("attributes", ["", 'sandbox="allow-forms allow-same-origin"'])
@pytest.mark.parametrize("when", COVER_WHEN)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"], ids=["same_site", "cross_site"])
def test_a_frame_that_comes_at_any_moment_is_not_clicked(
    reader: Reader,
    page_server: PageServer,
    victim: PageServer,
    host: str,
    when: str,
    attributes: str,
) -> None:
    url = frame_url(victim, host)
    page = start_on_markup(
        reader, page_server, covering_page(url, COVER_WHEN[when], attributes=attributes)
    )
    for _ in range(4):
        page.evaluate("uncover(); log.length = 0")
        outcome = click_button(page)
        was_clicked = any(one.startswith("click:more") for one in page.log)
        assert victim.hits["/landed"] == 0
        assert outcome == "unknown" or (outcome == "clicked") == was_clicked


def test_keys_do_not_follow_the_focus_into_a_frame_of_another_origin(
    reader: Reader, page_server: PageServer, victim: PageServer
) -> None:
    script = "addEventListener('keydown', () => frame.focus(), true)"
    field = "<input aria-label=Name>"
    page = start_on_markup(
        reader, page_server, field + covering_page(frame_url(victim, "localhost"), script)
    )
    error = page.error("type", xpath="//input", text="a name", submit=True)
    assert (error["details"]["reason"], error["details"]["effect"]) == ("other_origin", "unknown")
    assert victim.hits["/landed"] == 0


def test_a_point_in_a_frame_of_another_origin_is_not_clicked(
    reader: Reader, page_server: PageServer, victim: PageServer
) -> None:
    markup = covering_page(frame_url(victim, "localhost"), "cover()")
    page = start_on_markup(reader, page_server, markup)
    page("screenshot")
    error = page.error("click", x=200, y=130)
    assert (error["details"]["reason"], error["details"]["effect"]) == ("other_origin", "none")
    assert victim.hits["/landed"] == 0


@pytest.mark.slow
def test_files_are_not_given_to_a_frame_of_another_origin(
    reader: Reader, page_server: PageServer, victim: PageServer
) -> None:
    # A person has clicked in the frame, so that it may ask for files; it does when told to.
    asking = "onmessage = () => document.querySelector('input').click()"
    url = victim.add("/asks", f"<input type=file><script>{asking}</script>")
    ask = "onclick = () => frame.contentWindow.postMessage(1, '*')"
    page = start_on_markup(reader, page_server, covering_page(url, ask))

    async def click_in_frame() -> None:
        async with reader.session.run_tab() as tab:
            await tab.frame_input.open()
            await tab.page.frames[1].locator("body").click(force=True)

    reader.uploads = {"art_1": b"secret"}
    page.evaluate("cover()")
    reader.wait(click_in_frame())
    page.evaluate("uncover()")
    error = page.error("upload", xpath="//button", files=[{"artifactId": "art_1"}])
    assert error["details"]["reason"] == "other_origin"
