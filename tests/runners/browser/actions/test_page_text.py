"""Finding text on a page and waiting for it: `browser_find_text`, `browser_wait_for_text`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer, html
from tests.support.browser.task_page import start_on_markup


@pytest.fixture
def start(shared_reader: Reader, shared_page_server: PageServer) -> Any:
    """Return a function that starts a task on markup."""
    return lambda markup: start_on_markup(shared_reader, shared_page_server, markup)


def test_text_is_found_across_inline_elements_without_regard_to_case_and_space(start: Any) -> None:
    page = start("<p>One <b>Red\n  chair</b> costs <i>5</i> euros</p><p hidden>red chair</p>")
    found = page("find_text", text="red  CHAIR costs 5")
    assert found == {"total": 1, "matches": [{"text": "One Red chair costs 5 euros", "screen": 1}]}
    assert page("find_text", text="chair euros") == {"total": 0, "matches": []}
    assert page("find_text", text="5 euros one")["total"] == 0  # blocks are separate texts


@pytest.mark.parametrize(("text", "target"), [("chair 2", "b2"), ("home", "h"), ("agree", "box")])
def test_a_match_has_the_number_of_the_nearest_usable_element(
    start: Any, text: str, target: str
) -> None:
    rows = "".join(
        f"<tr><td>Chair {n}</td><td><button id=b{n}>Buy</button></td></tr>" for n in range(1, 4)
    )
    page = start(
        f"<a id=h href=#x>Home page</a><table>{rows}</table>"
        "<label>I agree <input id=box type=checkbox></label>"
    )
    (match,) = page("find_text", text=text)["matches"]
    page("click", clickId=match["clickId"])
    assert f"click:{target}:true" in page.log


def test_text_in_frames_and_shadow_roots_is_found_with_its_screen(start: Any) -> None:
    page = start(
        "<body style='margin:0'><div style='height:120vh'></div><my-box></my-box><p><x-box></x-box>"
        "<iframe srcdoc='<p>Framed word'></iframe><script>"
        "document.querySelector('my-box').attachShadow({mode: 'open'}).innerHTML = 'Open word';"
        "document.querySelector('x-box').attachShadow({mode: 'closed'}).innerHTML = 'Closed word'"
        "</script>"
    )
    found = page("find_text", text="word")
    texts = [(match["text"], match["screen"]) for match in found["matches"]]
    assert texts == [("Open word", 2), ("Closed word", 2), ("Framed word", 2)]


def test_the_first_match_is_scrolled_to_on_request(start: Any) -> None:
    page = start("<div style='height:400vh'>Top</div><p id=far>Far away</p>")
    assert page("find_text", text="far")["matches"][0]["screen"] == 5
    assert page.evaluate("scrollY") == 0
    page("find_text", text="far", scroll=True)
    assert page.evaluate("far.getBoundingClientRect().y < innerHeight")


def test_twenty_matches_are_listed_and_all_are_counted_with_secrets_masked(start: Any) -> None:
    page = start("<input type=password value=hunter22>" + "<p>Word hunter22</p>" * 30)
    found = page("find_text", text="word")
    assert (found["total"], len(found["matches"])) == (30, 20)
    assert {match["text"] for match in found["matches"]} == {"Word ***"}


def test_a_text_that_appears_is_awaited_and_one_that_disappears_too(start: Any) -> None:
    page = start("<p id=p>Loading…</p>")
    page.evaluate("void setTimeout(() => { p.innerHTML = '3 <b>results</b>' }, 300)")
    assert page("wait_for_text", text="3 Results") == {"found": True}
    page.evaluate("void setTimeout(() => { p.hidden = true }, 300)")
    assert page("wait_for_text", text="3 results", gone=True) == {"found": False, "gone": True}


def test_a_text_is_awaited_on_the_page_to_which_the_page_navigates(
    start: Any, shared_page_server: PageServer
) -> None:
    shared_page_server.add("/next", "<title>Next</title><p>Welcome back")
    page = start("<p>Signing in")
    page.evaluate("void setTimeout(() => { location = '/next' }, 300)")
    assert page("wait_for_text", text="welcome back") == {"found": True}


@pytest.mark.parametrize("gone", [True, False])
def test_a_text_that_does_not_come_or_go_in_time_is_an_error(start: Any, gone: bool) -> None:
    page = start("<p>Here")
    text = "here" if gone else "there"
    error = page.error("wait_for_text", text=text, gone=gone, timeoutMs=100)
    assert (error["errorCode"], error["details"]["reason"]) == ("NAVIGATION_TIMEOUT", "text")
    assert error["retryable"] is False  # the loop would wait a second time
    assert f"“{text}” is {'still on' if gone else 'not on'} the page" in error["message"]


def test_the_lower_case_of_a_letter_does_not_depend_on_its_place_in_a_word(start: Any) -> None:
    page = start("<p>ΟΔΟΣ ΑΘΗΝΑΣ 5</p><p>Straße İzmir</p>")
    for text in ("ΑΘΗΝΑΣ", "οδος αθηνας", "ΟΔΟΣ", "straße", "İzmir"):
        assert page("find_text", text=text)["total"] == 1, text


def test_a_text_is_not_gone_while_its_document_still_arrives(
    shared_reader: Reader, shared_page_server: PageServer
) -> None:
    markup = "<title>Half</title><p>First half</p>" + " " * 4096 + "<p>Busy</p>"
    shared_page_server.add("/arriving", html(markup, hang=1.0))
    page = start_on_markup(shared_reader, shared_page_server, "<p>Busy</p>")
    page.evaluate("setTimeout(() => { location.href = '/arriving' }, 100)")
    error = page.error("wait_for_text", text="Busy", gone=True, timeoutMs=1800)
    assert error["details"]["reason"] == "text"


@pytest.mark.slow
def test_a_page_that_reloads_again_and_again_is_waited_for_until_the_time_is_over(
    start: Any,
) -> None:
    page = start(
        "<p id=p></p><script>const n = Number(sessionStorage.n ?? 0); sessionStorage.n = n + 1;"
        "if (n < 12) setTimeout(() => location.reload(), 150); else p.textContent = 'At last'"
        "</script>"
    )
    assert page("wait_for_text", text="At last", timeoutMs=15_000)["found"] is True


def test_a_text_in_a_closed_root_that_comes_during_the_wait_is_seen(start: Any) -> None:
    page = start(
        "<script>setTimeout(() => { const box = document.createElement('x-box');"
        "document.body.append(box);"
        "box.attachShadow({mode: 'closed'}).innerHTML = 'Closed word' }, 400)</script><p>Text"
    )
    assert page("wait_for_text", text="closed word", timeoutMs=5000)["found"] is True


@pytest.mark.parametrize(
    ("markup", "kind"),
    [
        ("<form><input name=u><input type=password></form>", "login"),
        ("<table>" + "<tr><td>a<td>b" * 8 + "</table>", "table"),
        ("<h1>Hello</h1>", "page"),
    ],
)
def test_the_text_of_a_page_comes_with_its_type(start: Any, markup: str, kind: str) -> None:
    assert start(markup)("readability_extract")["pageType"] == kind
