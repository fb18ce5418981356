"""The tabs of a task: windows that its pages open are its own; every other tab is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runners.browser.action_support import task_tab
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.task_page import TaskPage, start_on_markup, start_on_url
from tests.support.runs.waiting import wait_until

pytest_plugins = ["tests.support.browser.browser_fixtures"]

OPENER = "<button onclick=\"window.open('/child')\">Open</button><p id=p>none"
CHILD = (
    "<title>Child</title><button onclick=\"opener.p.textContent = 'chosen'; window.close()\">Choose"
)


def tabs_of(reader: Reader) -> list[dict[str, Any]]:
    """Return the task's tabs as browser_list_tabs lists them."""
    return list((reader.call("browser_list_tabs").output or {})["tabs"])


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
    wait_until(lambda: any("which was closed" in notice for notice in tab.take_notices()), 10.0)
    error = reader.call("browser_list_tabs").error or {}
    assert error["errorCode"] == "TASK_TAB_CLOSED"
    assert (len(reader.session.open_tabs()), page.tab_id > 0) == (1, True)
