"""Clicking on a page that moves, covers, hangs or navigates, and waiting for the result."""

from __future__ import annotations

import pytest

from tests.support.browser.page_actions import click, evaluate, fill, open_markup, tool_error
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer, html
from tests.support.browser.template_sites import by_selector, by_text


def test_a_click_reaches_an_element_far_down_the_page(
    reader: Reader, page_server: PageServer
) -> None:
    open_markup(reader, page_server, "<p style='height:5000px'>long</p><button id=b>Far</button>")
    click(reader, by_text("far"))
    assert evaluate(reader, "log").count("click:b:true") == 1


def test_a_covered_element_is_not_clicked(reader: Reader, page_server: PageServer) -> None:
    open_markup(
        reader,
        page_server,
        "<button id=b>Buy</button><div style='position:fixed;inset:0'>Accept our cookies</div>",
    )
    error = tool_error(reader, "click_element", locator=by_text("buy"))
    assert (error["errorCode"], error["details"]["reason"]) == ("ELEMENT_NOT_FOUND", "covered")
    assert "Accept our cookies" in error["details"]["coveredBy"]
    assert error["details"]["effect"] == "none"
    assert not [entry for entry in evaluate(reader, "log") if entry.startswith("click")]


@pytest.mark.slow
def test_an_overlay_that_disappears_is_waited_for(reader: Reader, page_server: PageServer) -> None:
    open_markup(
        reader,
        page_server,
        "<button id=b>Buy</button><div id=o style='position:fixed;inset:0'></div>"
        "<script>setTimeout(() => o.remove(), 900)</script>",
    )
    click(reader, by_text("buy"))
    assert "click:b:true" in evaluate(reader, "log")


@pytest.mark.slow
def test_an_element_that_appears_late_or_moves_is_waited_for(
    reader: Reader, page_server: PageServer
) -> None:
    open_markup(
        reader,
        page_server,
        "<style>@keyframes m {to {margin-left: 400px}} #b {animation: m .8s linear forwards}"
        "</style><script>setTimeout(() => document.body.insertAdjacentHTML('beforeend',"
        " '<button id=b>Late</button>'), 800)</script>",
    )
    click(reader, by_text("late"))
    assert evaluate(reader, "log").count("click:b:true") == 1


@pytest.mark.slow
def test_a_button_that_is_enabled_late_is_waited_for(
    reader: Reader, page_server: PageServer
) -> None:
    open_markup(
        reader,
        page_server,
        "<button id=b disabled>Go</button><script>setTimeout(() => b.disabled = false, 800)"
        "</script>",
    )
    click(reader, by_text("go"))
    assert evaluate(reader, "log").count("click:b:true") == 1


def test_a_click_that_would_miss_hits_no_other_element(
    reader: Reader, page_server: PageServer
) -> None:
    open_markup(
        reader,
        page_server,
        "<button id=b>Keep</button><button id=d>Delete all</button><script>"
        "addEventListener('pointermove', event => {"
        " if (event.target === b && !d.dataset.moved) { d.dataset.moved = 1; b.before(d);"
        " d.style.cssText = b.style.cssText; } }, true)</script>",
    )
    click(reader, by_text("keep"))
    log = evaluate(reader, "log")
    assert "click:d:true" not in log
    assert log.count("click:b:true") == 1


def test_a_link_for_a_new_tab_opens_in_this_tab(reader: Reader, page_server: PageServer) -> None:
    open_markup(
        reader, page_server, f"<a target=_blank href='{page_server.url('/plain')}'>Open</a>"
    )
    click(reader, by_text("open"))
    page = reader.call("read_current_page").output
    assert page is not None
    assert page["title"] == "Plain"


def test_a_form_without_a_button_is_submitted_by_enter(
    reader: Reader, page_server: PageServer
) -> None:
    open_markup(reader, page_server, "<form action=/plain><input id=q name=q></form>")
    fill(reader, by_selector("#q"), "x")
    result = reader.call("submit_form")
    assert result.output is not None, result.error
    assert result.output["match"]["matched"] == "enter"
    page = reader.call("read_current_page").output
    assert page is not None
    assert page["url"].endswith("/plain?q=x")


def test_of_several_forms_the_filled_one_is_submitted(
    reader: Reader, page_server: PageServer
) -> None:
    open_markup(
        reader,
        page_server,
        "<form action=/other><button>Subscribe</button></form>"
        "<form action=/plain><input id=q name=q><button>Go</button></form>",
    )
    fill(reader, by_selector("#q"), "1")
    assert reader.call("submit_form").ok
    page = reader.call("read_current_page").output
    assert page is not None
    assert page["title"] == "Plain"


def test_a_page_without_a_form_has_nothing_to_submit(
    reader: Reader, page_server: PageServer
) -> None:
    open_markup(reader, page_server, "<p>Nothing here")
    error = tool_error(reader, "submit_form")
    assert (error["errorCode"], error["details"]["reason"]) == ("ELEMENT_NOT_FOUND", "no_form")


def test_a_dialog_of_the_page_is_dismissed_and_reported(
    reader: Reader, page_server: PageServer
) -> None:
    open_markup(
        reader,
        page_server,
        "<button onclick=\"window.confirmed = confirm('Really?')\">Ask</button>",
    )
    assert click(reader, by_text("ask"))["warnings"] == [
        "The page asked “Really?” in a dialog, which was dismissed."
    ]
    assert evaluate(reader, "confirmed") is False


@pytest.mark.slow
def test_a_click_after_which_the_page_hangs_may_have_had_its_effect(
    reader: Reader, page_server: PageServer
) -> None:
    open_markup(reader, page_server, '<button onclick="for(;;){}">Hang</button>')
    result = reader.call("click_element", locator=by_text("hang"), seconds=5.0)
    assert result.error is not None
    assert result.error["errorCode"] in ("NAVIGATION_TIMEOUT", "STEP_EXECUTION_FAILED")
    assert result.error["details"].get("effect") == "unknown"


@pytest.mark.slow
def test_a_wait_condition_that_is_not_met_is_a_result(
    reader: Reader, page_server: PageServer
) -> None:
    open_markup(reader, page_server, "<p id=p>Here</p>")
    never = {"type": "selector", "value": "#never", "timeoutMs": 200}
    output = reader.call("wait_for", condition=never).output
    assert output is not None
    assert output["met"] is False
    output = reader.call("wait_for", condition={**never, "value": "#p"}).output
    assert output is not None
    assert output["met"] is True


@pytest.mark.slow
def test_a_slow_next_page_is_waited_for(reader: Reader, page_server: PageServer) -> None:
    slow = page_server.add("/later", html("<title>Later</title>", delay=4.5))
    open_markup(reader, page_server, f"<a href='{slow}'>On</a>")
    click(reader, by_text("on"))
    page = reader.call("read_current_page").output
    assert page is not None
    assert page["title"] == "Later"


@pytest.mark.slow
def test_a_page_that_a_script_redirects_after_a_while_is_followed(
    reader: Reader, page_server: PageServer
) -> None:
    slow = page_server.add("/later", html("<title>Later</title>", delay=4.0))
    open_markup(
        reader,
        page_server,
        f"<button onclick=\"fetch('/api/slow.json').then(() => location = '{slow}')\">On</button>",
    )
    click(reader, by_text("on"))
    page = reader.call("read_current_page").output
    assert page is not None
    assert page["title"] == "Later"


def test_the_page_of_a_session_is_not_used_in_its_next_run(
    reader: Reader, page_server: PageServer
) -> None:
    open_markup(reader, page_server, "<input id=a>")
    had_page = [reader.session.has_page]
    reader.session.run_id = "run_next"
    had_page.append(reader.session.has_page)
    assert had_page == [True, False]
    assert (
        tool_error(reader, "fill_field", locator=by_selector("#a"), value="x")["errorCode"]
        == "PAGE_CRASHED"
    )
    open_markup(reader, page_server, "<input id=a>")
    fill(reader, by_selector("#a"), "x")


@pytest.mark.slow
def test_a_page_that_was_opened_long_ago_still_gets_its_wait_time(
    reader: Reader, page_server: PageServer
) -> None:
    open_markup(reader, page_server, "<p id=p>Here")

    async def age() -> None:
        async with reader.session.run_tab() as tab:
            assert tab.parsed_at is not None
            tab.parsed_at -= 60

    reader.wait(age())
    page = reader.call("read_current_page").output
    assert page is not None
    assert page["warnings"] == []
