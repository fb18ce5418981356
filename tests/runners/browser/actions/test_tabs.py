"""The tabs of a task: windows that its pages open are its own; every other tab is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from playwright.async_api import BrowserContext, CDPSession, Page

from runners.browser.tabs import task_tab
from runners.invocation.invoke import invoke
from runners.tools.base import ToolCall, ToolResult
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.task_page import TaskPage, start_on_markup, start_on_url
from tests.support.runs.waiting import wait_until

OPENER = "<button onclick=\"window.open('/child')\">Open</button><p id=p>none"
CHILD = (
    "<title>Child</title><button onclick=\"opener.p.textContent = 'chosen'; window.close()\">Choose"
)


async def crash_current_tab(reader: Reader) -> None:
    """Crash the page of the current tab."""
    async with reader.session.run_tab() as tab:
        cdp = await tab.page.context.new_cdp_session(tab.page)
        asyncio.ensure_future(cdp.send("Page.crash")).add_done_callback(lambda f: f.exception())
        while tab.is_alive:
            await asyncio.sleep(0.01)


def tabs_of(reader: Reader) -> list[dict[str, Any]]:
    """Return the task's tabs as browser_list_tabs lists them."""
    return list((reader.call("browser_list_tabs").output or {})["tabs"])


async def call_at_once(reader: Reader, name: str, *pages: TaskPage) -> list[ToolResult]:
    """Call an action on several tabs at once."""
    calls = [ToolCall(name, {"tabId": page.tab_id}) for page in pages]
    return await asyncio.gather(*(invoke(call, reader.context()) for call in calls))


def open_child(page: TaskPage, server: PageServer) -> TaskPage:
    """Open a second tab by a click, and return its page."""
    server.add("/child", CHILD)
    (warning,) = page.click("Open")["warnings"]
    child = TaskPage(page.read, tabs_of(page.read)[-1]["tabId"])
    assert warning == f"The page opened the tab {child.tab_id} with {server.url('/child')}."
    return child


def test_a_window_that_a_page_opens_is_a_tab_of_the_task_with_its_opener(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, OPENER)
    child = open_child(page, page_server)
    first, second = tabs_of(reader)
    assert first == {
        "tabId": page.tab_id,
        "url": page_server.url("/task"),
        "title": "Task",
        "current": True,
    }
    assert (second["title"], "current" in second) == ("Child", False)
    shown = child("switch_tab")
    assert (shown["tabId"], shown["title"]) == (child.tab_id, "Child")
    assert [tab.get("current", False) for tab in tabs_of(reader)] == [False, True]
    number = child.index()["Choose"]
    clicked = reader.call("browser_click", tabId=child.tab_id, clickId=number)
    if clicked.error is not None:  # the tab was closed before the click was over
        assert clicked.error["details"] == {"effect": "unknown", "taskTabId": page.tab_id}
    wait_until(lambda: len(tabs_of(reader)) == 1)
    assert [tab["tabId"] for tab in tabs_of(reader)] == [page.tab_id]
    assert "chosen" in page("readability_extract")["markdown"]
    error = child.error("dom_index")
    assert (error["errorCode"], error["details"]) == (
        "INVALID_TASK_TAB",
        {"taskTabId": page.tab_id},
    )


def test_a_tab_is_closed_but_not_the_only_one(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(reader, page_server, OPENER)
    child = open_child(page, page_server)
    closed = page("close_tab")
    assert (closed["closed"], closed["tabId"], closed["title"]) == (True, child.tab_id, "Child")
    error = child.error("close_tab")
    assert (error["errorCode"], len(tabs_of(reader))) == ("INVALID_PARAMETER", 1)
    assert child("screenshot")["url"] == page_server.url("/child")
    assert len(reader.session.open_tabs()) == 1


def test_of_two_tabs_that_are_closed_at_once_one_stays_open(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, OPENER)
    child = open_child(page, page_server)
    first, second = reader.wait(call_at_once(reader, "browser_close_tab", page, child))
    assert ((first.output or {})["tabId"], (second.error or {})["errorCode"]) == (
        child.tab_id,
        "INVALID_PARAMETER",
    )
    assert [tab["tabId"] for tab in tabs_of(reader)] == [child.tab_id]


def test_a_new_start_closes_all_tabs_of_the_task(reader: Reader, page_server: PageServer) -> None:
    child = open_child(start_on_markup(reader, page_server, OPENER), page_server)
    start_on_url(reader, page_server.url("/plain"))
    assert len(reader.session.open_tabs()) == 1
    assert child.error("switch_tab")["errorCode"] == "INVALID_TASK_TAB"


def test_tabs_of_other_sessions_are_not_the_tasks(
    open_reader: Callable[..., Reader], page_server: PageServer
) -> None:
    mine, other = open_reader(), open_reader()
    page = start_on_markup(mine, page_server, "<p>x")
    start_on_markup(other, page_server, "<p>y")
    for name in ("switch_tab", "close_tab"):
        result = other.call(f"browser_{name}", tabId=page.tab_id)
        assert (result.error or {})["errorCode"] == "INVALID_TASK_TAB"
    assert len(tabs_of(mine)) == len(tabs_of(other)) == 1


def test_more_windows_than_a_task_may_have_are_closed(
    reader: Reader, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_tab, "MAX_TABS", 2)
    page = start_on_markup(reader, page_server, OPENER)
    open_child(page, page_server)
    (warning,) = page.click("Open")["warnings"]
    assert warning == (
        "The page opened a new window, which was closed: a task has at most 2 tabs;"
        " browser_close_tab closes one."
    )
    assert len(tabs_of(reader)) == 2


def pages_of(reader: Reader) -> int:
    """Return how many pages the session's browser shows, tabs of the task or not."""

    async def count() -> int:
        (tab, *_) = reader.session.open_tabs()
        return len(tab.page.context.pages)

    return reader.wait(count())


def test_windows_that_a_new_window_opens_at_once_are_tabs_of_the_task_too(
    reader: Reader, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_tab, "MAX_TABS", 4)
    page_server.add("/child", CHILD)
    page = start_on_markup(
        reader,
        page_server,
        "<button onclick=\"const w = window.open('/child');"
        " for (let n = 0; n < 6; n++) w.open('/child')\">Open",
    )
    page.click("Open")
    wait_until(lambda: len(tabs_of(reader)) == pages_of(reader) == 4, 10.0)
    start_on_url(reader, page_server.url("/plain"))
    wait_until(lambda: len(tabs_of(reader)) == pages_of(reader) == 1, 10.0)


@pytest.fixture
def open_slowly(
    reader: Reader, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> tuple[TaskPage, int]:
    """Click a button that opens a window, which becomes a tab only after the click; return the page
    and the button's clickId.
    """
    page_server.add("/child", CHILD)
    page = start_on_markup(reader, page_server, OPENER)
    number = page.index()["Open"]
    page("debugger_attach")
    attach = BrowserContext.new_cdp_session

    async def attach_slowly(context: BrowserContext, to: Page) -> CDPSession:
        await asyncio.sleep(0.3)
        return await attach(context, to)

    monkeypatch.setattr(BrowserContext, "new_cdp_session", attach_slowly)
    with monkeypatch.context() as patch:
        patch.setattr(task_tab, "WINDOW_SECONDS", 0.0)
        assert "warnings" not in page("click", clickId=number)
    return page, number


def test_a_window_that_becomes_a_tab_late_does_not_delay_the_reports_of_later_ones(
    reader: Reader, open_slowly: tuple[TaskPage, int]
) -> None:
    page, number = open_slowly
    wait_until(lambda: len(tabs_of(reader)) == 2)
    assert len(page("wait_for_loaded")["warnings"]) == 1
    assert len(page("click", clickId=number)["warnings"]) == 1


@pytest.mark.usefixtures("open_slowly")
def test_a_window_that_becomes_a_tab_after_its_task_ended_is_closed(
    reader: Reader, page_server: PageServer
) -> None:
    start_on_url(reader, page_server.url("/plain"))
    wait_until(lambda: pages_of(reader) == 1, 10.0)
    assert len(tabs_of(reader)) == len(reader.session.open_tabs()) == 1


def test_actions_on_two_tabs_at_once_act_on_both(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(reader, page_server, OPENER)
    child = open_child(page, page_server)

    results = reader.wait(call_at_once(reader, "browser_dom_index", *(page, child) * 3))
    assert [result.error for result in results] == [None] * 6
    assert len(tabs_of(reader)) == 2


@pytest.mark.parametrize("reuse", [False, True])
def test_after_a_crash_of_the_current_tab_another_one_is_current(
    reader: Reader, page_server: PageServer, reuse: bool
) -> None:
    noopener = OPENER.replace("'/child'", "'/child', '', 'noopener'")
    page = start_on_markup(reader, page_server, noopener)  # a process of its own
    child = open_child(page, page_server)
    child("switch_tab")
    reader.wait(crash_current_tab(reader))
    error = child.error("dom_index")
    assert (error["errorCode"], error["details"]) == (
        "INVALID_TASK_TAB",
        {"taskTabId": page.tab_id},
    )
    assert [(tab["tabId"], tab["current"]) for tab in tabs_of(reader)] == [(page.tab_id, True)]
    again = start_on_url(reader, page_server.url("/plain"), reuseExistingTab=reuse)
    assert (again.tab_id == page.tab_id, len(tabs_of(reader))) == (reuse, 1)
    assert len(reader.session.open_tabs()) == 1


def test_a_tab_that_shows_one_of_the_products_own_pages_accepts_no_actions(
    reader: Reader, page_server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = open_child(start_on_markup(reader, page_server, OPENER), page_server)
    monkeypatch.setenv("CONTINUITY_OWN_PORTS", str(page_server.server_port))
    for name in ("switch_tab", "dom_index"):
        assert child.error(name)["errorCode"] == "INVALID_TARGET"


def test_a_later_run_of_the_session_continues_with_all_tabs(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, OPENER)
    child = open_child(page, page_server)
    child("switch_tab")
    reader.session.run_id = "run_later"
    assert page("screenshot")["url"] == page_server.url("/task")
    assert child("screenshot")["url"] == page_server.url("/child")


def test_a_stopped_task_keeps_no_windows(reader: Reader, page_server: PageServer) -> None:
    page_server.add("/child", CHILD)
    page = start_on_markup(reader, page_server, OPENER)
    reader.call("task_stop")
    assert reader.call("click_element", locator={"mode": "semantic", "query": "Open"}).ok
    (tab,) = reader.session.open_tabs()
    wait_until(
        lambda: any("which was closed" in notice for notice in tab.watch.take_notices()), 10.0
    )
    error = reader.call("browser_list_tabs").error or {}
    assert error["errorCode"] == "TASK_TAB_CLOSED"
    assert (len(reader.session.open_tabs()), page.tab_id > 0) == (1, True)
