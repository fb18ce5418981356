"""Test the effect of each tab event on what is known of a browser."""

from __future__ import annotations

from typing import Any

import pytest

from runners.paired_browser.protocol.browser_state import BrowserState
from tests.support.runners.protocol_browser import tab

WINDOWS = [
    {"windowId": 1, "type": "normal", "focused": True},
    {"windowId": 2, "type": "normal", "focused": False},
]


def state_of(*tabs: dict[str, Any], **fields: Any) -> BrowserState:
    return BrowserState({"windows": WINDOWS, "groups": [], "tabs": tabs, **fields})


def places(state: BrowserState) -> list[tuple[int, int, int]]:
    """Return window, position and id of each tab."""
    return [(one["windowId"], one["index"], one["tabId"]) for one in state.as_dict()["tabs"]]


@pytest.fixture
def state() -> BrowserState:
    tabs = [tab(number, index=number - 1) for number in (1, 2, 3)]
    return state_of(*tabs, tab(9, windowId=2), activeWindowId=1, activeTabId=1)


def test_a_created_tab_moves_those_behind_it(state: BrowserState) -> None:
    assert state.apply({"kind": "created", "tab": tab(4, index=1)})
    assert places(state) == [(1, 0, 1), (1, 1, 4), (1, 2, 2), (1, 3, 3), (2, 0, 9)]


def test_a_removed_tab_leaves_no_gap_and_an_empty_window_is_closed(state: BrowserState) -> None:
    assert state.apply({"kind": "removed", "tabId": 2})
    assert state.apply({"kind": "removed", "tabId": 9})
    assert places(state) == [(1, 0, 1), (1, 1, 3)]
    assert [window["windowId"] for window in state.as_dict()["windows"]] == [1]


@pytest.mark.parametrize(
    ("tab_id", "index", "order"), [(1, 2, [2, 3, 1]), (3, 0, [3, 1, 2]), (2, 1, [1, 2, 3])]
)
def test_a_moved_tab_takes_its_place(
    state: BrowserState, tab_id: int, index: int, order: list[int]
) -> None:
    assert state.apply({"kind": "moved", "tabId": tab_id, "windowId": 1, "index": index})
    assert [tab_id for window, _, tab_id in places(state) if window == 1] == order
    assert [index for window, index, _ in places(state) if window == 1] == [0, 1, 2]


def test_a_detached_tab_is_in_no_window_until_it_is_attached(state: BrowserState) -> None:
    assert state.apply({"kind": "detached", "tabId": 2})
    assert [tab_id for _, _, tab_id in places(state)] == [1, 3, 9]
    assert state.apply({"kind": "attached", "tabId": 2, "windowId": 2, "index": 0})
    assert places(state) == [(1, 0, 1), (1, 1, 3), (2, 0, 2), (2, 1, 9)]


def test_the_active_tab_of_the_active_window_is_the_active_tab(state: BrowserState) -> None:
    assert state.apply({"kind": "activated", "tabId": 2, "windowId": 1})
    assert state.apply({"kind": "activated", "tabId": 9, "windowId": 2})
    known = state.as_dict()
    assert known["activeTabId"] == 2
    assert [one["tabId"] for one in known["tabs"] if one["active"]] == [2, 9]


def test_a_replaced_tab_gets_another_id(state: BrowserState) -> None:
    assert state.apply({"kind": "replaced", "tabId": 7, "replacedTabId": 1})
    assert places(state)[0] == (1, 0, 7)
    assert state.as_dict()["activeTabId"] == 7


def test_an_updated_tab_has_its_new_title_and_an_url_without_credentials(
    state: BrowserState,
) -> None:
    changed = tab(1, title="<b>New</b>", url="https://ann:pw@site.test/a?b=1#token", active=True)
    assert state.apply({"kind": "updated", "tab": changed})
    shown = state.as_dict()["tabs"][0]
    assert (shown["title"], shown["url"]) == ("<b>New</b>", "https://site.test/a?b=1")


def test_groups_come_and_go(state: BrowserState) -> None:
    group = {"groupId": 5, "windowId": 1, "title": "Work"}
    assert state.apply({"kind": "groupCreated", "group": group})
    assert state.apply({"kind": "updated", "tab": tab(1, groupId=5)})
    assert state.apply({"kind": "groupUpdated", "group": {**group, "title": "Play"}})
    assert state.as_dict()["groups"][0]["title"] == "Play"
    assert state.apply({"kind": "groupRemoved", "groupId": 5})
    assert "groupId" not in state.as_dict()["tabs"][0]
    assert state.as_dict()["groups"] == []


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "updated", "tab": tab(77)},
        {"kind": "activated", "tabId": 77, "windowId": 1},
        {"kind": "activated", "tabId": 1, "windowId": 2},
        {"kind": "moved", "tabId": 77, "windowId": 1, "index": 0},
        {"kind": "detached", "tabId": 77},
        {"kind": "attached", "tabId": 77, "windowId": 1, "index": 0},
        {"kind": "replaced", "tabId": 78, "replacedTabId": 77},
    ],
    ids=lambda event: str(event["kind"]),
)
def test_an_event_about_an_unknown_tab_does_not_fit(
    state: BrowserState, event: dict[str, Any]
) -> None:
    before = state.as_dict()
    assert not state.apply(event)
    assert state.as_dict() == before
