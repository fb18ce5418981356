"""The browser actions: parameters, result, timeout and effect of each (S1 §4.2, and ours).

docs/browser-actions.md describes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from runners.actions import parameters as params
from runners.actions import results
from runners.tools.base import Effect


@dataclass(frozen=True, slots=True)
class Action:
    """One browser action; `timeout_ms` limits its execution."""

    name: str
    parameters: type[BaseModel]
    result: type[results.ActionResult]
    effect: Effect
    timeout_ms: int

    def is_idempotent(self, args: Mapping[str, Any]) -> bool:
        """Return whether repeating a call with these arguments is safe, whatever its outcome.

        Typing without submit is, because the text replaces what the field contains.
        """
        if self.name == TYPE.name:
            return not args.get("submit", False)
        return self.effect != Effect.ONCE

    def may_change_page(self, args: Mapping[str, Any]) -> bool:
        """Return whether the page may look different after a call with these arguments."""
        if self.name == FIND_TEXT.name:
            return bool(args.get("scroll", False))
        changing_reads = (TASK_START.name, SCROLL.name, WAIT_FOR_TEXT.name)
        return self.effect != Effect.READ or self.name in changing_reads


ACTIONS: dict[str, Action] = {}


def _action(
    name: str,
    parameters: type[BaseModel],
    result: type[results.ActionResult],
    effect: Effect,
    timeout_ms: int,
) -> Action:
    action = ACTIONS[name] = Action(name, parameters, result, effect, timeout_ms)
    return action


TASK_START = _action("task_start", params.TaskStart, results.TaskStarted, Effect.READ, 20_000)
DEBUGGER_ATTACH = _action(
    "browser_debugger_attach",
    params.BrowserDebuggerAttach,
    results.DebuggerAttached,
    Effect.READ,
    5_000,
)
TASK_STOP = _action("task_stop", params.TaskStop, results.TaskStopped, Effect.AT_LEAST_ONCE, 5_000)
WAIT_FOR_LOADED = _action(
    "browser_wait_for_loaded",
    params.BrowserWaitForLoaded,
    results.PageLoaded,
    Effect.READ,
    20_000,
)
SCREENSHOT = _action(
    "browser_screenshot", params.BrowserScreenshot, results.ScreenshotTaken, Effect.READ, 10_000
)
READABILITY = _action(
    "browser_readability_extract",
    params.BrowserReadabilityExtract,
    results.PageText,
    Effect.READ,
    10_000,
)
DOM_INDEX = _action(
    "browser_dom_index", params.BrowserDomIndex, results.DomIndex, Effect.READ, 10_000
)
OBSERVE = _action(
    "browser_observe", params.BrowserObserve, results.PageObservation, Effect.READ, 10_000
)
XPATH_SCAN = _action(
    "browser_xpath_scan", params.BrowserXpathScan, results.XpathScan, Effect.READ, 10_000
)
CLICK = _action("browser_click", params.BrowserClick, results.Clicked, Effect.ONCE, 5_000)
TYPE = _action("browser_type", params.BrowserType, results.Typed, Effect.ONCE, 10_000)
GET_HTML = _action(
    "browser_get_html", params.BrowserGetHtml, results.HtmlSaved, Effect.READ, 10_000
)
SCROLL = _action("browser_scroll", params.BrowserScroll, results.Scrolled, Effect.READ, 20_000)
SELECT = _action(
    "browser_select", params.BrowserSelect, results.OptionsSelected, Effect.ONCE, 5_000
)
HOVER = _action("browser_hover", params.BrowserHover, results.Hovered, Effect.AT_LEAST_ONCE, 5_000)
PRESS_KEY = _action(
    "browser_press_key", params.BrowserPressKey, results.KeyPressed, Effect.ONCE, 10_000
)
GO_BACK = _action("browser_go_back", params.BrowserGoBack, results.WentBack, Effect.ONCE, 20_000)
DRAG = _action("browser_drag", params.BrowserDrag, results.Dragged, Effect.ONCE, 10_000)
FIND_TEXT = _action(
    "browser_find_text", params.BrowserFindText, results.TextFound, Effect.READ, 10_000
)
WAIT_FOR_TEXT = _action(
    "browser_wait_for_text", params.BrowserWaitForText, results.TextAwaited, Effect.READ, 30_000
)

UPLOAD = _action("browser_upload", params.BrowserUpload, results.FilesUploaded, Effect.ONCE, 20_000)
LIST_TABS = _action(
    "browser_list_tabs", params.BrowserListTabs, results.TabList, Effect.READ, 5_000
)
SWITCH_TAB = _action(
    "browser_switch_tab",
    params.BrowserSwitchTab,
    results.TabShown,
    Effect.AT_LEAST_ONCE,
    5_000,
)
CLOSE_TAB = _action(
    "browser_close_tab", params.BrowserCloseTab, results.TabClosed, Effect.AT_LEAST_ONCE, 10_000
)

# Asked before an action in a paired browser (runners.actions.judged); agents do not have it.
JUDGE = Action("browser_judge", params.BrowserListTabs, results.ActionResult, Effect.READ, 8_000)
