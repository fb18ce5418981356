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


TASK_START = Action("task_start", params.TaskStart, results.TaskStarted, Effect.READ, 20_000)
DEBUGGER_ATTACH = Action(
    "browser_debugger_attach",
    params.BrowserDebuggerAttach,
    results.DebuggerAttached,
    Effect.READ,
    5_000,
)
TASK_STOP = Action("task_stop", params.TaskStop, results.TaskStopped, Effect.AT_LEAST_ONCE, 5_000)
WAIT_FOR_LOADED = Action(
    "browser_wait_for_loaded",
    params.BrowserWaitForLoaded,
    results.PageLoaded,
    Effect.READ,
    20_000,
)
SCREENSHOT = Action(
    "browser_screenshot", params.BrowserScreenshot, results.ScreenshotTaken, Effect.READ, 10_000
)
READABILITY = Action(
    "browser_readability_extract",
    params.BrowserReadabilityExtract,
    results.PageText,
    Effect.READ,
    10_000,
)
DOM_INDEX = Action(
    "browser_dom_index", params.BrowserDomIndex, results.DomIndex, Effect.READ, 10_000
)
OBSERVE = Action(
    "browser_observe", params.BrowserObserve, results.PageObservation, Effect.READ, 10_000
)
XPATH_SCAN = Action(
    "browser_xpath_scan", params.BrowserXpathScan, results.XpathScan, Effect.READ, 10_000
)
CLICK = Action("browser_click", params.BrowserClick, results.Clicked, Effect.ONCE, 5_000)
TYPE = Action("browser_type", params.BrowserType, results.Typed, Effect.ONCE, 10_000)
GET_HTML = Action("browser_get_html", params.BrowserGetHtml, results.HtmlSaved, Effect.READ, 10_000)
SCROLL = Action("browser_scroll", params.BrowserScroll, results.Scrolled, Effect.READ, 20_000)
SELECT = Action("browser_select", params.BrowserSelect, results.OptionsSelected, Effect.ONCE, 5_000)
HOVER = Action("browser_hover", params.BrowserHover, results.Hovered, Effect.AT_LEAST_ONCE, 5_000)
PRESS_KEY = Action(
    "browser_press_key", params.BrowserPressKey, results.KeyPressed, Effect.ONCE, 10_000
)
GO_BACK = Action("browser_go_back", params.BrowserGoBack, results.WentBack, Effect.ONCE, 20_000)
DRAG = Action("browser_drag", params.BrowserDrag, results.Dragged, Effect.ONCE, 10_000)
FIND_TEXT = Action(
    "browser_find_text", params.BrowserFindText, results.TextFound, Effect.READ, 10_000
)
WAIT_FOR_TEXT = Action(
    "browser_wait_for_text", params.BrowserWaitForText, results.TextAwaited, Effect.READ, 30_000
)

UPLOAD = Action("browser_upload", params.BrowserUpload, results.FilesUploaded, Effect.ONCE, 20_000)
LIST_TABS = Action("browser_list_tabs", params.BrowserListTabs, results.TabList, Effect.READ, 5_000)
SWITCH_TAB = Action(
    "browser_switch_tab",
    params.BrowserSwitchTab,
    results.TabShown,
    Effect.AT_LEAST_ONCE,
    5_000,
)
CLOSE_TAB = Action(
    "browser_close_tab", params.BrowserCloseTab, results.TabClosed, Effect.AT_LEAST_ONCE, 10_000
)

# Asked before an action in a paired browser (runners.actions.judged); agents do not have it.
JUDGE = Action("browser_judge", params.BrowserListTabs, results.ActionResult, Effect.READ, 8_000)

ACTIONS: Mapping[str, Action] = {
    action.name: action
    for action in (
        TASK_START,
        DEBUGGER_ATTACH,
        TASK_STOP,
        WAIT_FOR_LOADED,
        SCREENSHOT,
        READABILITY,
        DOM_INDEX,
        OBSERVE,
        XPATH_SCAN,
        CLICK,
        TYPE,
        GET_HTML,
        SCROLL,
        SELECT,
        HOVER,
        PRESS_KEY,
        GO_BACK,
        DRAG,
        FIND_TEXT,
        WAIT_FOR_TEXT,
        UPLOAD,
        LIST_TABS,
        SWITCH_TAB,
        CLOSE_TAB,
    )
}
