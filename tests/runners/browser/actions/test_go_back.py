"""Going back on a task's page: `browser_go_back`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageResponse, PageServer, html, serve_pages
from tests.support.browser.task_page import start_on_markup, start_on_url


@pytest.fixture
def start(shared_reader: Reader, shared_page_server: PageServer) -> Any:
    """Return a function that starts a task on markup."""
    return lambda markup: start_on_markup(shared_reader, shared_page_server, markup)


def test_the_earlier_page_is_shown_again(start: Any, shared_page_server: PageServer) -> None:
    page = start("<a href=/plain>Go</a>")
    page.click("Go")
    page("wait_for_loaded")
    output = page("go_back")
    assert output == {"url": shared_page_server.url("/task"), "title": "Task"}
    assert list(page.index()) == ["Go"]


def test_an_earlier_state_of_the_same_page_is_shown_again(
    start: Any, shared_page_server: PageServer
) -> None:
    page = start("<p id=p>first</p><script>onpopstate = () => { p.textContent = 'back' }</script>")
    page.evaluate("history.pushState(1, '', '/task?step=2')")
    assert page("go_back")["url"] == shared_page_server.url("/task")
    assert page("wait_for_text", text="back") == {"found": True}


def test_a_tab_that_showed_no_page_before_stays_where_it_is(start: Any) -> None:
    page = start("<p>First")
    error = page.error("go_back")
    assert (error["errorCode"], error["retryable"]) == ("INVALID_PARAMETER", False)
    assert error["details"]["effect"] == "none"
    assert page("find_text", text="first")["total"] == 1


def test_a_page_that_answers_too_late_leaves_the_effect_unknown(
    shared_reader: Reader, shared_page_server: PageServer
) -> None:
    headers = {"Cache-Control": "no-store"}
    url = shared_page_server.add("/slow-page", html("<p>Slow", headers=headers))
    page = start_on_url(shared_reader, url)
    start_on_url(shared_reader, shared_page_server.url("/plain"), reuseExistingTab=True)
    shared_page_server.add("/slow-page", PageResponse(b"", delay=4.0))
    result = shared_reader.call("browser_go_back", tabId=page.tab_id, seconds=1.5)
    error = result.error or {}
    assert (error["errorCode"], error["details"]["effect"]) == ("NAVIGATION_TIMEOUT", "unknown")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (PageResponse(status=0), "The earlier page could not be opened"),
        (PageResponse(status=204), "The server sent no page"),
    ],
    ids=["closed", "no content"],
)
def test_a_page_that_cannot_be_opened_any_more_is_an_error(
    shared_reader: Reader, shared_page_server: PageServer, answer: PageResponse, message: str
) -> None:
    headers = {"Cache-Control": "no-store"}
    url = shared_page_server.add("/gone", html("<p>Here", headers=headers))
    page = start_on_url(shared_reader, url)
    start_on_url(shared_reader, shared_page_server.url("/plain"), reuseExistingTab=True)
    shared_page_server.add("/gone", answer)
    error = page.error("go_back")
    assert error["message"].startswith(message)
    assert error["details"] == {"url": url, "effect": "unknown"}


def test_a_product_page_is_not_gone_back_to(
    reader: Reader, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_pages() as product:
        url = product.add("/own", "<p>Own")
        page = start_on_url(reader, url)
        start_on_url(reader, page_server.url("/plain"), reuseExistingTab=True)
        port = url.split(":")[2].split("/")[0]
        monkeypatch.setenv("CONTINUITY_OWN_PORTS", port)
        hits = product.hits["/own"]
        assert page.error("go_back")["errorCode"] == "INVALID_TARGET"
        assert product.hits["/own"] == hits
        assert page("screenshot")["url"] == page_server.url("/plain")
