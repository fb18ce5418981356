"""What a browser has open: its windows, tab groups and tabs, and the effect of each tab event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

State = dict[str, Any]


class BrowserState:
    """The windows, groups and tabs of one browser.

    `apply` returns False for an event that does not fit the state: then the state is incomplete,
    and the browser has to send it again.
    """

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._windows = {one["windowId"]: dict(one) for one in state["windows"]}
        self._groups = {one["groupId"]: dict(one) for one in state["groups"]}
        self._tabs = {one["tabId"]: _cleaned(one) for one in state["tabs"]}
        self._detached: dict[int, State] = {}  # tabs on their way to another window
        self._active_window: int | None = state.get("activeWindowId")
        self._active_tab: int | None = state.get("activeTabId")

    def as_dict(self) -> State:
        """Return the state as a browser sends it, tabs by window and position."""
        tabs = sorted(self._tabs.values(), key=lambda tab: (tab["windowId"], tab["index"]))
        state: State = {
            "windows": list(self._windows.values()),
            "groups": list(self._groups.values()),
            "tabs": tabs,
        }
        if self._active_window in self._windows:
            state["activeWindowId"] = self._active_window
        if self._active_tab in self._tabs:
            state["activeTabId"] = self._active_tab
        return state

    def apply(self, event: Mapping[str, Any]) -> bool:
        """Change the state as a tab event says; return False if the event does not fit it."""
        effects: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
            "created": self._created,
            "updated": self._updated,
            "removed": self._removed,
            "activated": self._activated,
            "moved": self._moved,
            "attached": self._attached,
            "detached": self._detach,
            "replaced": self._replaced,
            "groupCreated": self._group_changed,
            "groupUpdated": self._group_changed,
            "groupRemoved": self._group_removed,
        }
        return effects[event["kind"]](event)

    def _created(self, event: Mapping[str, Any]) -> bool:
        tab = _cleaned(event["tab"])
        if tab["tabId"] in self._tabs:  # a full state that was read after the event had it already
            return self._updated(event)
        self._insert(tab)
        return True

    def _updated(self, event: Mapping[str, Any]) -> bool:
        tab = _cleaned(event["tab"])
        if tab["tabId"] not in self._tabs:
            return False
        self._tabs[tab["tabId"]] = tab
        if tab["active"]:
            self._activate(tab)
        return True

    def _removed(self, event: Mapping[str, Any]) -> bool:
        self._detached.pop(event["tabId"], None)
        self._take(event["tabId"])
        return True

    def _activated(self, event: Mapping[str, Any]) -> bool:
        tab = self._tabs.get(event["tabId"])
        if tab is None or tab["windowId"] != event["windowId"]:
            return False
        tab["active"] = True
        self._activate(tab)
        return True

    def _moved(self, event: Mapping[str, Any]) -> bool:
        tab = self._tabs.get(event["tabId"])
        if tab is None or tab["windowId"] != event["windowId"]:
            return False
        before, after = tab["index"], event["index"]
        for other in self._in_window(tab["windowId"]):
            if before < other["index"] <= after:
                other["index"] -= 1
            elif after <= other["index"] < before:
                other["index"] += 1
        tab["index"] = after
        return True

    def _detach(self, event: Mapping[str, Any]) -> bool:
        tab = self._take(event["tabId"])
        if tab is None:
            return False
        self._detached[tab["tabId"]] = {**tab, "active": False}
        return True

    def _attached(self, event: Mapping[str, Any]) -> bool:
        tab = self._detached.pop(event["tabId"], None) or self._take(event["tabId"])
        if tab is None:
            return False
        self._insert({**tab, "windowId": event["windowId"], "index": event["index"]})
        return True

    def _replaced(self, event: Mapping[str, Any]) -> bool:
        tab = self._tabs.pop(event["replacedTabId"], None)
        if tab is None:
            return False
        tab["tabId"] = event["tabId"]
        self._tabs[tab["tabId"]] = tab
        if self._active_tab == event["replacedTabId"]:
            self._active_tab = tab["tabId"]
        return True

    def _group_changed(self, event: Mapping[str, Any]) -> bool:
        group = dict(event["group"])
        self._groups[group["groupId"]] = group
        return True

    def _group_removed(self, event: Mapping[str, Any]) -> bool:
        for tab in self._tabs.values():
            if tab.get("groupId") == event["groupId"]:
                del tab["groupId"]
        self._groups.pop(event["groupId"], None)
        return True

    # --- tabs in windows --------------------------------------------------------------------------

    def _in_window(self, window_id: int) -> list[State]:
        return [tab for tab in self._tabs.values() if tab["windowId"] == window_id]

    def _insert(self, tab: State) -> None:
        """Put a tab into its window and move the tabs behind it."""
        window_id = tab["windowId"]
        new_window = {"windowId": window_id, "type": "normal", "focused": False}
        self._windows.setdefault(window_id, new_window)
        for other in self._in_window(window_id):
            if other["index"] >= tab["index"]:
                other["index"] += 1
        self._tabs[tab["tabId"]] = tab
        if tab["active"]:
            self._activate(tab)

    def _take(self, tab_id: int) -> State | None:
        """Remove a tab from its window and close the gap; an empty window is closed."""
        tab = self._tabs.pop(tab_id, None)
        if tab is None:
            return None
        left = self._in_window(tab["windowId"])
        for other in left:
            if other["index"] > tab["index"]:
                other["index"] -= 1
        if not left:
            self._windows.pop(tab["windowId"], None)
        return tab

    def _activate(self, tab: State) -> None:
        for other in self._in_window(tab["windowId"]):
            other["active"] = other is tab
        if self._active_window in (None, tab["windowId"]):
            self._active_tab = tab["tabId"]


def _cleaned(tab: Mapping[str, Any]) -> State:
    """Return a tab whose URL has neither credentials nor a fragment."""
    url = tab.get("url", "")
    if "@" not in url and "#" not in url:
        return dict(tab)
    try:
        parts = urlsplit(url)
    except ValueError:
        return {**tab, "url": ""}
    host = parts.netloc.rpartition("@")[2]
    return {**tab, "url": urlunsplit((parts.scheme, host, parts.path, parts.query, ""))}
