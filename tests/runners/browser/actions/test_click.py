"""Clicking on a task's page: `browser_click`."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.support.browser.form_pages import SHADOW
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.task_page import start_on_markup

STRATEGIES = [("cdp_mouse", "true"), ("dom_click", "false")]


@pytest.mark.parametrize(("strategy", "trusted"), STRATEGIES)
def test_an_element_is_clicked_once_with_the_requested_strategy(
    reader: Reader, page_server: PageServer, strategy: str, trusted: str
) -> None:
    page = start_on_markup(reader, page_server, "<button id=b>Buy</button>")
    output = page.click("Buy", strategy=strategy)
    assert output == {"clicked": True, "strategy": strategy}
    assert [one for one in page.log if one.startswith("click")] == [f"click:b:{trusted}"]


def test_the_default_strategy_is_the_mouse(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(reader, page_server, "<button id=b>Buy</button>")
    assert page.click("Buy")["strategy"] == "cdp_mouse"


def test_an_element_that_moved_since_the_index_is_clicked_at_its_new_position(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<button id=a>A</button><button id=b>B</button>")
    number = page.index()["A"]
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('p'),"
        " {style: 'height:2000px'}), a)"
    )
    page("click", clickId=number)
    assert page.log.count("click:a:true") == 1
    assert "click:b:true" not in page.log


def test_a_page_that_moves_an_index_number_does_not_redirect_the_click(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader, page_server, "<button id=a>Cancel</button><button id=b>Pay</button>"
    )
    ids = page.index()
    page.evaluate(
        f"b.setAttribute('data-mimo_click_id', '{ids['Cancel']}');"
        " a.removeAttribute('data-mimo_click_id')"
    )
    page("click", clickId=ids["Cancel"])
    assert page.log.count("click:a:true") == 1
    assert "click:b:true" not in page.log


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("a.remove()", "gone"),
        ("document.body.innerHTML = '<button>A</button>'", "gone"),
        ("a.disabled = true", "disabled"),
        ("a.hidden = true", "hidden"),
        (
            "document.body.append(Object.assign(document.createElement('div'),"
            " {style: 'position:fixed;inset:0'}))",
            "covered",
        ),
    ],
)
@pytest.mark.parametrize("strategy", ["cdp_mouse", "dom_click"])
def test_an_unusable_element_is_not_clicked_and_the_reason_is_reported(
    reader: Reader, page_server: PageServer, change: str, reason: str, strategy: str
) -> None:
    page = start_on_markup(reader, page_server, "<button id=a>A</button>")
    number = page.index()["A"]
    page.evaluate(f"{{ {change} }}")
    error = page.error("click", clickId=number, strategy=strategy)
    assert (error["errorCode"], error["details"]["reason"]) == ("ELEMENT_NOT_FOUND", reason)
    assert error["details"]["effect"] == "none"
    assert not [one for one in page.log if one.startswith("click")]


TOAST = "<button id=undo>Undo</button><form action=/bought><button id=buy>Buy</button></form>"


def test_an_xpath_beside_the_number_of_an_element_that_is_gone_clicks_nothing(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, TOAST)
    number = page.index()["Undo"]
    page.evaluate("undo.remove()")
    error = page.error("click", clickId=number, xpath="//form//button")
    assert (error["errorCode"], error["details"]["reason"]) == ("ELEMENT_NOT_FOUND", "gone")
    assert error["details"]["effect"] == "none"
    assert page.log == []


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("click", {}),
        ("drag", {"dx": 5}),
        ("drag", {"xpath": None, "toXpath": "//form//button", "toClickId": ...}),
        ("hover", {}),
        ("press_key", {"key": "Enter"}),
        ("scroll", {}),
        ("select", {"options": ["A"]}),
        ("type", {"text": "A"}),
    ],
)
def test_a_number_and_an_xpath_that_name_two_elements_are_refused(
    reader: Reader, page_server: PageServer, name: str, params: dict[str, Any]
) -> None:
    page = start_on_markup(reader, page_server, TOAST)
    number = page.index()["Undo"]
    params = {"clickId": number, "xpath": "//form//button", **params}
    given = {key: number if value is ... else value for key, value in params.items()}
    error = page.error(name, **{key: value for key, value in given.items() if value is not None})
    assert (error["errorCode"], error["details"]["reason"]) == ("INVALID_PARAMETER", "two_elements")
    assert error["details"]["effect"] == "none"
    assert page.log == []


def test_an_xpath_beside_a_number_may_name_its_element_alone(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, TOAST)
    number = page.index()["Undo"]
    for xpath in ("//button", "//a"):
        error = page.error("click", clickId=number, xpath=xpath)
        assert error["details"]["reason"] == "two_elements"
    page("click", clickId=number, xpath="//button[1][not(ancestor::form)]")
    assert page.log.count("click:undo:true") == 1


def test_an_xpath_that_names_another_element_after_a_miss_clicks_nothing_else(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<button id=a>A</button>")
    page.evaluate(
        "addEventListener('pointermove', () => a.insertAdjacentHTML('beforebegin',"
        " '<button id=b>B</button><br>'), {once: true, capture: true})"
    )
    page("click", xpath="//button")
    assert page.log.count("click:a:true") == 1
    assert "click:b:true" not in page.log


@pytest.mark.parametrize("xpath", ["//button[", "count(//button)", "//unknown:x", "//a >> //b >> "])
def test_an_invalid_xpath_is_rejected(reader: Reader, page_server: PageServer, xpath: str) -> None:
    page = start_on_markup(reader, page_server, "<a href=#x>A</a>")
    page.evaluate("document.querySelector('a').attachShadow; 1")
    error = page.error("click", xpath=xpath)
    assert error["errorCode"] in ("INVALID_PARAMETER", "ELEMENT_NOT_FOUND")
    assert error["details"].get("effect") == "none"


@pytest.mark.slow
def test_every_xpath_of_an_index_finds_its_element(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(
        reader,
        page_server,
        SHADOW + "<svg width=50 height=50><a href='#y'><text y=20>Go</text></a></svg>",
    )
    for one in page("xpath_scan")["elements"]:
        page("click", xpath=one["xpath"])
    clicks = [entry for entry in page.log if entry.startswith("click:")]
    assert len(clicks) >= 5
    assert "click:first:true" in clicks


def test_a_button_in_a_frame_and_in_shadow_roots_is_clicked(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, SHADOW)
    page.evaluate(
        "for (const doc of [document.querySelector('my-box').shadowRoot,"
        " document.querySelector('iframe').contentDocument])"
        " doc.addEventListener('click', (event) => log.push(`inner:${event.target.id}`))"
    )
    page.click("Pay now")
    page("click", xpath="//my-box >> /button[1]")
    assert [one for one in page.log if one.startswith("inner")] == ["inner:pay", "inner:shsave"]


def test_a_button_in_a_closed_shadow_root_is_clicked_and_nothing_else(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<x-a></x-a><script>const root = document.querySelector('x-a').attachShadow({mode:"
        " 'closed'}); root.innerHTML = '<button id=yes>Yes</button><button id=no>No</button>';"
        "root.addEventListener('click', (event) => log.push(`inner:${event.target.id}`))</script>",
    )
    page.click("Yes")
    assert [one for one in page.log if one.startswith("inner")] == ["inner:yes"]


@pytest.mark.slow
def test_a_link_opens_in_the_tab_of_the_task(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(reader, page_server, "<a href=/plain target=_blank>Go</a>")
    page.click("Go")
    page("wait_for_loaded")
    assert page("screenshot")["url"].endswith("/plain")


def test_a_dialog_is_dismissed_and_its_question_is_reported(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader, page_server, "<button onclick=\"confirm('Really?')\">Buy</button>"
    )
    output = page.click("Buy")
    assert (output["clicked"], output["strategy"]) == (True, "cdp_mouse")
    assert output["warnings"] == ["The page asked “Really?” in a dialog, which was dismissed."]


@pytest.mark.parametrize("event", ["pointerdown", "mousedown", "mouseup", "click"])
def test_a_page_that_navigates_during_the_click_was_clicked(
    reader: Reader, page_server: PageServer, event: str
) -> None:
    script = f"<script>on{event} = () => location.assign('/plain')</script>"
    page = start_on_markup(reader, page_server, f"<button>Go</button>{script}")
    assert page.click("Go")["clicked"] is True
    page("wait_for_loaded")
    assert page("readability_extract")["title"] == "Plain"


@pytest.mark.slow
def test_a_page_that_hangs_on_click_may_have_been_clicked(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<button onclick='for (;;);'>Hang</button>")
    error = page.error("click", clickId=page.index()["Hang"])
    assert error["errorCode"] == "NAVIGATION_TIMEOUT"
    assert error["details"]["effect"] == "unknown"


@pytest.mark.slow
def test_a_page_that_already_hangs_was_not_clicked(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(reader, page_server, "<button id=b>B</button>")
    number = page.index()["B"]
    page_server.add("/hanging", "")
    page.evaluate("void setTimeout(() => { navigator.sendBeacon('/hanging'); for (;;); })")
    end = time.monotonic() + 60.0
    while not page_server.hits["/hanging"]:
        assert time.monotonic() < end, "the page does not hang"
        time.sleep(0.01)
    error = page.error("click", clickId=number)
    assert error["errorCode"] == "NAVIGATION_TIMEOUT"
    assert error["details"]["effect"] == "none"
