"""Ways of an agent without an action of their own: navigate, go back, scroll, press Enter alone."""

from __future__ import annotations

import pytest

from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.task_page import start_on_markup, start_on_url


@pytest.mark.slow
def test_the_same_tab_opens_another_address_and_the_previous_one(
    reader: Reader, page_server: PageServer
) -> None:
    first = start_on_markup(reader, page_server, "<p>first")
    second = start_on_url(reader, page_server.url("/plain"), reuseExistingTab=True)
    assert second("screenshot")["url"] == page_server.url("/plain")
    back = start_on_url(reader, page_server.url("/task"), reuseExistingTab=True)
    assert back("readability_extract")["markdown"] == "first"
    assert {first.tab_id, second.tab_id} == {back.tab_id}


@pytest.mark.slow
def test_a_fragment_of_the_same_page_is_opened_and_read(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<button id=b>B</button><p>text")
    number = page.index()["B"]
    again = start_on_url(reader, f"{page_server.url('/task')}#there", reuseExistingTab=True)
    assert again("wait_for_loaded") == {"status": "complete"}
    assert "text" in again("readability_extract")["markdown"]
    assert again("click", clickId=number)["clicked"] is True


def test_a_click_far_down_the_page_scrolls_there_and_makes_the_page_load_more(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<p style='height:3000px'></p><button id=last>Last</button><script>"
        "new IntersectionObserver((seen, watcher) => { if (!seen[0].isIntersecting) return;"
        " watcher.disconnect(); last.insertAdjacentHTML('afterend', '<button>More</button>'); })"
        ".observe(last)</script>",
    )
    assert set(page.index()) == {"Last"}
    page.click("Last")
    assert page.evaluate("scrollY") > 0
    assert "More" in page.index(scope="viewport")


@pytest.mark.slow
def test_enter_alone_is_the_same_text_with_submit(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(
        reader, page_server, "<form action=/done><input id=i name=n value=kept></form>"
    )
    page("type", xpath="//input", text="kept", submit=True)
    page("wait_for_loaded")
    assert page("screenshot")["url"].endswith("/done?n=kept")


def test_an_unknown_option_is_rejected_with_the_available_options(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader, page_server, "<select aria-label=Size><option>Small<option>Large</select>"
    )
    error = page.error("type", clickId=page.index()["Size"], text="Enormous")
    assert error["details"]["options"] == ["Small", "Large"]
