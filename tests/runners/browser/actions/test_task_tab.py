"""The tab of a task: started, stopped, lost, of another task, and never on the product's own
pages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from runners.actions.catalogue import ACTIONS, CLOSE_TAB, LIST_TABS
from runners.browser.session import tab
from runners.invocation.invoke import invoke
from runners.tools.base import ToolCall, ToolResult
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageResponse, PageServer, serve_pages
from tests.support.browser.task_page import start_on_markup, start_on_url
from tests.support.runs.waiting import wait_until

ARGS: dict[str, dict[str, Any]] = {
    "browser_click": {"clickId": 1},
    "browser_type": {"clickId": 1, "text": "x"},
    "browser_upload": {"clickId": 1, "files": [{"artifactId": "a.txt"}]},
    "browser_scroll": {"screens": 1},
    "browser_select": {"clickId": 1, "options": ["x"]},
    "browser_hover": {"clickId": 1},
    "browser_press_key": {"key": "Enter"},
    "browser_drag": {"clickId": 1, "dx": 10},
    "browser_find_text": {"text": "x"},
    "browser_wait_for_text": {"text": "x"},
}
TAB_ACTIONS = [name for name in ACTIONS if name.startswith("browser_") and name != LIST_TABS.name]


def test_a_task_starts_on_a_page_or_an_empty_one(reader: Reader, page_server: PageServer) -> None:
    output = reader.call("task_start", url=page_server.url("/plain")).output or {}
    assert (output["url"], output["title"]) == (page_server.url("/plain"), "Plain")
    assert {type(output["tabId"]), type(output["windowId"])} == {int}
    empty = reader.call("task_start").output or {}
    assert (empty["url"], empty["tabId"] != output["tabId"]) == ("about:blank", True)
    assert set(empty) == {"tabId", "windowId", "url"}


def test_a_group_title_is_answered_with_a_warning(reader: Reader) -> None:
    output = reader.call("task_start", groupTitle="Work").output or {}
    assert output["warnings"] == ["This browser has no tab groups; groupTitle was ignored."]


def test_a_new_start_closes_the_previous_tab_unless_it_is_reused(
    reader: Reader, page_server: PageServer
) -> None:
    first = start_on_markup(reader, page_server, "<p>x")
    reused = start_on_url(reader, page_server.url("/plain"), reuseExistingTab=True)
    assert reused.tab_id == first.tab_id
    second = start_on_url(reader, page_server.url("/plain"))
    assert second.tab_id != first.tab_id
    error = first.error("screenshot")
    assert (error["errorCode"], error["retryable"]) == ("INVALID_TASK_TAB", False)
    assert error["details"] == {"taskTabId": second.tab_id}
    assert len(reader.session.open_tabs()) == 1


@pytest.mark.parametrize("name", TAB_ACTIONS)
def test_every_action_uses_the_tab_of_its_own_task(
    reader: Reader, page_server: PageServer, name: str
) -> None:
    page = start_on_markup(reader, page_server, "<button>B</button>")
    args = ARGS.get(name, {})
    wrong = reader.call(name, tabId=page.tab_id + 1, **args).error or {}
    assert wrong["errorCode"] == "INVALID_TASK_TAB"
    reader.call("task_stop")
    closed = reader.call(name, tabId=page.tab_id, **args).error or {}
    assert closed["errorCode"] == "TASK_TAB_CLOSED"


@pytest.mark.slow
def test_stopping_twice_is_no_failure_and_the_tab_opens_the_requested_page(
    reader: Reader, page_server: PageServer
) -> None:
    start_on_markup(reader, page_server, "<p>x")
    for _ in range(2):
        assert reader.call("task_stop").output == {"stopped": True}
    assert len(reader.session.open_tabs()) == 1
    start_on_markup(reader, page_server, "<p>x")
    assert reader.call("task_stop", closeTab=True).output == {"stopped": True}
    assert reader.session.open_tabs() == []
    assert start_on_url(reader, page_server.url("/plain"))("wait_for_loaded") == {
        "status": "complete"
    }


def test_a_later_run_of_the_same_session_continues_with_the_tab(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<button id=b>Buy</button>")
    number = page.index()["Buy"]
    reader.session.run_id = "run_later"
    page("click", clickId=number)
    assert page.log.count("click:b:true") == 1


@pytest.mark.slow
def test_a_tab_that_is_closed_during_a_click_may_have_been_clicked(
    reader: Reader, page_server: PageServer
) -> None:
    page_server.add("/pressed", PageResponse(b"", delay=60.0))
    page = start_on_markup(
        reader,
        page_server,
        "<button>Go</button><script>onmousedown = () => { const request = new XMLHttpRequest();"
        " request.open('GET', '/pressed', false); request.send(); }</script>",
    )
    number = page.index()["Go"]

    async def click_and_close() -> ToolResult:
        args = {"tabId": page.tab_id, "clickId": number}
        clicking = asyncio.create_task(invoke(ToolCall("browser_click", args), reader.context()))
        while not page_server.hits["/pressed"]:
            await asyncio.sleep(0.01)
        await reader.session.open_tabs()[0].page.close()
        return await clicking

    error = reader.wait(click_and_close()).error or {}
    assert (error["errorCode"], error["retryable"]) == ("TASK_TAB_CLOSED", False)
    assert error["details"]["effect"] == "unknown"
    assert page.error("screenshot")["errorCode"] == "TASK_TAB_CLOSED"
    assert start_on_url(reader, page_server.url("/plain"))("wait_for_loaded") == {
        "status": "complete"
    }


def test_a_page_that_crashes_is_a_closed_tab(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(reader, page_server, "<p>x")

    async def crash() -> None:
        (tab,) = reader.session.open_tabs()
        cdp = await tab.page.context.new_cdp_session(tab.page)
        asyncio.ensure_future(cdp.send("Page.crash")).add_done_callback(lambda f: f.exception())
        while tab.is_alive:
            await asyncio.sleep(0.01)

    reader.wait(crash())
    assert page.error("dom_index")["errorCode"] == "TASK_TAB_CLOSED"
    assert start_on_url(reader, page_server.url("/plain"))("wait_for_loaded") == {
        "status": "complete"
    }


@pytest.mark.parametrize(
    "url", ["file://localhost/etc/passwd", "javascript:alert(1)", "about:config", "x"]
)
def test_only_web_addresses_are_opened(reader: Reader, url: str) -> None:
    error = reader.call("task_start", url=url).error or {}
    assert error["errorCode"] == "INVALID_PARAMETER"
    assert reader.session.open_tabs() == []


def test_a_task_of_a_remote_caller_stays_on_the_public_network(
    open_reader: Callable[..., Reader], page_server: PageServer
) -> None:
    error = open_reader(trust="remote").call("task_start", url=page_server.url("/plain")).error
    assert (error or {})["errorCode"] == "TRUST_LEVEL_NOT_ALLOWED"


def test_product_pages_are_neither_opened_nor_used(
    reader: Reader, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_pages() as product_server:
        monkeypatch.setenv("CONTINUITY_OWN_PORTS", str(product_server.server_port))
        direct = reader.call("task_start", url=product_server.url("/plain")).error or {}
        page_server.add(
            "/there", PageResponse(status=302, headers={"Location": product_server.url("/plain")})
        )
        redirected = reader.call("task_start", url=page_server.url("/there")).error or {}
        page = start_on_markup(
            reader, page_server, f"<a href='{product_server.url('/plain')}'>Admin</a>"
        )
        page.click("Admin")
        errors = [direct, redirected]
        for name in (name for name in TAB_ACTIONS if name != CLOSE_TAB.name):
            result = reader.call(name, tabId=page.tab_id, **ARGS.get(name, {}))
            errors.append(dict(result.error or {}))
        assert urlsplit(product_server.url("/")).port == product_server.server_port
    assert {(one["errorCode"], one["retryable"]) for one in errors} == {("INVALID_TARGET", False)}
    assert reader.saved == []
    assert start_on_url(reader, page_server.url("/other"))("wait_for_loaded") == {
        "status": "complete"
    }


@pytest.mark.slow
def test_a_slow_page_is_requested_once_and_waited_for_beyond_the_check_of_the_previous_page(
    reader: Reader, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tab, "HANG_SECONDS", 0.3)
    page = start_on_url(reader, page_server.url("/plain"))
    assert start_on_url(reader, page_server.url("/slow"), reuseExistingTab=True).tab_id == (
        page.tab_id
    )
    reader(page_server.url("/plain"))
    assert reader(page_server.url("/slow"))["title"] == "Slow"
    assert page_server.hits["/slow"] == 2


def test_a_page_that_hangs_is_replaced_although_the_next_page_never_answers(
    reader: Reader, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tab, "HANG_SECONDS", 0.3)
    page = start_on_markup(reader, page_server, "<p>x")
    hangs = "const ask = new XMLHttpRequest(); ask.open('GET', '/never', false); ask.send()"
    page.evaluate(f"void setTimeout(() => {{ {hangs} }}, 0)")
    wait_until(lambda: page_server.hits["/never"])
    url = page_server.url("/plain")
    error = reader.call("task_start", url=url, reuseExistingTab=True).error or {}
    assert error["errorCode"] == "TASK_TAB_CLOSED"
    assert start_on_url(reader, url, reuseExistingTab=True).tab_id != page.tab_id
