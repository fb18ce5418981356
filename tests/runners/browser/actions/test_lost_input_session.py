"""Real input that is unavailable: before the input starts, a script replaces it; after that,
nothing does."""

from __future__ import annotations

import pytest
from playwright.async_api import BrowserContext, Error

from tests.support.browser.lost_input import FALLBACK_WARNINGS, close_session_after, detach
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.task_page import start_on_markup
from tests.support.runs.waiting import wait_until


@pytest.fixture
def no_cdp_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the browser refuse every new session for a page."""

    async def refuse(context: BrowserContext, page: object) -> None:
        raise Error("Protocol error (Target.attachToTarget): Not allowed")

    monkeypatch.setattr(BrowserContext, "new_cdp_session", refuse)


@pytest.mark.parametrize("params", [{}, {"strategy": "cdp_mouse"}])
def test_a_click_whose_session_was_lost_before_it_is_made_by_a_script_with_a_warning(
    reader: Reader, page_server: PageServer, params: dict[str, str]
) -> None:
    page = start_on_markup(reader, page_server, "<button id=b>Buy</button>")
    detach(page)
    assert page.click("Buy", **params) == {
        "clicked": True,
        "strategy": "dom_click",
        "warnings": FALLBACK_WARNINGS,
    }
    assert [one for one in page.log if one.startswith("click")] == ["click:b:false"]
    assert page.click("Buy") == {"clicked": True, "strategy": "cdp_mouse"}


@pytest.mark.slow
def test_a_text_whose_session_was_lost_before_it_is_entered_by_a_script_with_a_warning(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<form action=/plain><input id=i name=n></form>")
    detach(page)
    output = page("type", xpath="//input", text="你好", submit=True)
    assert output == {"typed": True, "strategy": "dom_input", "warnings": FALLBACK_WARNINGS}
    page("wait_for_loaded")
    assert page("screenshot")["url"].endswith("/plain?n=%E4%BD%A0%E5%A5%BD")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mousePressed", "mouseReleased"])
def test_a_click_whose_session_is_lost_after_it_started_is_not_repeated(
    reader: Reader, page_server: PageServer, kind: str
) -> None:
    page = start_on_markup(reader, page_server, "<button id=b>Buy</button>")
    close_session_after(page, kind)
    error = page.error("click", clickId=page.index()["Buy"])
    assert (error["errorCode"], error["retryable"]) == ("CDP_UNAVAILABLE", False)
    assert error["details"]["effect"] == "unknown"
    assert page.log.count("pointerdown:b:true") == 1
    assert len([one for one in page.log if one.startswith("click")]) <= 1
    page.evaluate("log.length = 0")
    assert page.click("Buy") == {"clicked": True, "strategy": "cdp_mouse"}
    assert page.log.count("click:b:true") == 1


@pytest.mark.parametrize("submit", [True, False])
def test_a_text_whose_session_is_lost_after_it_started_is_not_written_again(
    reader: Reader, page_server: PageServer, submit: bool
) -> None:
    page = start_on_markup(reader, page_server, "<input id=i>")
    close_session_after(page, "keyDown")
    error = page.error("type", xpath="//input", text="abc", submit=submit)
    assert (error["errorCode"], error["retryable"]) == ("CDP_UNAVAILABLE", False)
    assert error["details"]["effect"] == "unknown"
    assert "input:i:false" not in page.log
    assert page.evaluate("'abc'.startsWith(i.value) && i.value.length > 0") is True
    assert page("type", xpath="//input", text="def")["strategy"] == "cdp_key"
    assert page.evaluate("i.value") == "def"


@pytest.mark.parametrize(
    ("markup", "name", "params", "made"),
    [
        ("<button id=e>Buy", "press_key", {"key": "Space", "times": 5}, "click:e:true"),
        ("<input id=e>", "type", {"text": "a", "submit": True}, "input:e:true"),
    ],
    ids=["next-press", "submit-after-the-text"],
)
def test_input_whose_session_is_lost_between_two_of_its_parts_is_not_repeated(
    reader: Reader,
    page_server: PageServer,
    markup: str,
    name: str,
    params: dict[str, object],
    made: str,
) -> None:
    page = start_on_markup(reader, page_server, markup)
    close_session_after(page, "keyUp", is_answered=True)
    error = page.error(name, xpath="//*[@id='e']", **params)
    assert (error["errorCode"], error["retryable"]) == ("CDP_UNAVAILABLE", False)
    assert error["details"]["effect"] == "unknown"
    assert [one for one in page.log if one.startswith(("click", "input"))] == [made]


def test_an_option_is_not_selected_again_if_the_session_is_lost_before_enter(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<select id=s onchange=\"log.push('changed')\"><option>A<option>B</select>",
    )
    detach(page)
    error = page.error("type", xpath="//select", text="B", submit=True)
    assert (error["errorCode"], error["details"]["effect"]) == ("CDP_UNAVAILABLE", "unknown")
    assert page.log.count("changed") == 1


def test_a_browser_that_refuses_sessions_is_reported_and_a_script_clicks(
    reader: Reader, page_server: PageServer, request: pytest.FixtureRequest
) -> None:
    page = start_on_markup(reader, page_server, "<button id=b>Buy</button>")
    request.getfixturevalue("no_cdp_session")
    error = page.error("debugger_attach")
    assert (error["errorCode"], error["retryable"]) == ("CDP_PERMISSION_DENIED", False)
    output = page.click("Buy")
    assert output["strategy"] == "dom_click"
    assert output["warnings"][0].startswith("CDP_PERMISSION_DENIED: ")


@pytest.mark.slow
def test_an_action_that_neither_input_nor_script_can_do_is_not_done(
    reader: Reader, page_server: PageServer, request: pytest.FixtureRequest
) -> None:
    page = start_on_markup(reader, page_server, "<button id=b>B</button>")
    number = page.index()["B"]
    request.getfixturevalue("no_cdp_session")
    page.evaluate("void (fetch('/hangs'), setTimeout(() => { for (;;); }))")
    wait_until(lambda: page_server.hits["/hangs"] == 1)
    error = page.error("click", clickId=number, strategy="cdp_mouse")
    assert (error["errorCode"], error["retryable"]) == ("CDP_UNAVAILABLE", True)
    assert error["details"]["effect"] == "none"
    assert error["details"]["causeCode"] == "NAVIGATION_TIMEOUT"


@pytest.mark.slow
def test_a_script_that_hangs_during_the_action_is_not_repeated(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<button onclick='for (;;);'>B</button>")
    number = page.index()["B"]
    detach(page)
    error = page.error("click", clickId=number)
    assert (error["errorCode"], error["retryable"]) == ("CDP_UNAVAILABLE", False)
    assert error["details"]["effect"] == "unknown"


def test_a_missing_element_is_reported_also_without_real_input(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<button id=b>B</button>")
    number = page.index()["B"]
    detach(page)
    page.evaluate("b.remove()")
    assert page.error("click", clickId=number)["errorCode"] == "ELEMENT_NOT_FOUND"
