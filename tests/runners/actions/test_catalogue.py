"""The browser action catalogue matches the seed, for every kind of browser."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from decisions.foundation.validation.json_schema import schema_of
from runners.actions.catalogue import ACTIONS, CLICK, PRESS_KEY, TYPE
from runners.actions.results import Clicked, TaskStarted
from runners.tools.base import Effect
from runners.tools.registry import get_tool, list_actions, list_tools

# Required parameters, optional parameters and timeouts from agent.md and S1 §4.2.
SEED: dict[str, tuple[list[str], list[str], int]] = {
    "task_start": ([], ["groupTitle", "reuseExistingTab", "url"], 20_000),
    "browser_debugger_attach": (["tabId"], [], 5_000),
    "task_stop": ([], ["closeTab"], 5_000),
    "browser_wait_for_loaded": (["tabId"], ["timeoutMs"], 20_000),
    "browser_screenshot": (["tabId"], ["fullPage", "longEdge", "numbers"], 10_000),
    "browser_readability_extract": (["tabId"], [], 10_000),
    "browser_dom_index": (["tabId"], ["assignAttr", "scope"], 10_000),
    "browser_xpath_scan": (["tabId"], ["scope"], 10_000),
    "browser_click": (["tabId"], ["clickId", "dialog", "strategy", "x", "xpath", "y"], 5_000),
    "browser_type": (
        ["tabId", "text"],
        ["clickId", "dialog", "strategy", "submit", "xpath"],
        10_000,
    ),
    "browser_get_html": (["tabId"], ["xpath"], 10_000),
}
# The same of the actions that the seed does not have.
OURS: dict[str, tuple[list[str], list[str], int]] = {
    "browser_observe": (["tabId"], ["boxes", "from", "full"], 10_000),
    "browser_scroll": (
        ["tabId"],
        ["clickId", "maxScreens", "screens", "to", "untilNothingNew", "xpath"],
        20_000,
    ),
    "browser_select": (["options", "tabId"], ["clickId", "dialog", "xpath"], 5_000),
    "browser_hover": (["tabId"], ["clickId", "xpath"], 5_000),
    "browser_press_key": (["key", "tabId"], ["clickId", "dialog", "times", "xpath"], 10_000),
    "browser_go_back": (["tabId"], [], 20_000),
    "browser_drag": (["tabId"], ["clickId", "dx", "dy", "toClickId", "toXpath", "xpath"], 10_000),
    "browser_find_text": (["tabId", "text"], ["scroll"], 10_000),
    "browser_wait_for_text": (["tabId", "text"], ["gone", "timeoutMs"], 30_000),
    "browser_upload": (["files", "tabId"], ["clickId", "xpath"], 20_000),
    "browser_list_tabs": ([], [], 5_000),
    "browser_switch_tab": (["tabId"], [], 5_000),
    "browser_close_tab": (["tabId"], [], 10_000),
}
INVALID_PARAMETERS: list[tuple[str, dict[str, Any]]] = [
    ("browser_click", {"clickId": 1}),
    ("browser_click", {"tabId": 7}),
    ("browser_click", {"tabId": "7", "clickId": 1}),
    ("browser_click", {"tabId": 7, "clickId": 0}),
    ("browser_click", {"tabId": True, "clickId": 1}),
    ("browser_click", {"tabId": 7, "clickId": 1, "strategy": "cdp_key"}),
    ("browser_click", {"tabId": 7, "clickId": 1, "selector": "#a"}),
    ("browser_click", {"tabId": 7, "xpath": ""}),
    ("browser_click", {"tabId": 7, "x": 1}),
    ("browser_click", {"tabId": 7, "x": 1, "y": 1, "clickId": 1}),
    ("browser_click", {"tabId": 7, "x": 1, "y": 1, "strategy": "dom_click"}),
    ("browser_click", {"tabId": 7, "x": -1, "y": 1}),
    ("browser_screenshot", {"tabId": 7, "numbers": True, "fullPage": True}),
    ("browser_screenshot", {"tabId": 7, "longEdge": 10}),
    ("browser_click", {"tabId": 7, "clickId": 1, "dialog": "accept"}),
    ("browser_click", {"tabId": 7, "clickId": 1, "dialog": {"text": "x"}}),
    ("browser_upload", {"tabId": 7, "clickId": 1, "files": []}),
    ("browser_upload", {"tabId": 7, "clickId": 1, "files": [{}]}),
    ("browser_upload", {"tabId": 7, "clickId": 1, "files": [{"path": "a", "artifactId": "b"}]}),
    ("browser_upload", {"tabId": 7, "files": [{"path": "a"}]}),
    ("browser_type", {"tabId": 7, "clickId": 1}),
    ("browser_type", {"tabId": 7, "clickId": 1, "text": "x" * 50_001}),
    ("browser_type", {"tabId": 7, "clickId": 1, "text": None}),
    ("browser_dom_index", {"tabId": 7, "scope": "page"}),
    ("browser_dom_index", {"tabId": 7, "assignAttr": "onclick"}),
    ("browser_dom_index", {"tabId": 7, "assignAttr": 'data-a"] b'}),
    ("browser_observe", {"tabId": 7, "from": 0}),
    ("browser_wait_for_loaded", {"tabId": 7, "timeoutMs": 20_001}),
    ("browser_wait_for_loaded", {"tabId": 7, "timeoutMs": 0}),
    ("browser_screenshot", {"tabId": -1}),
    ("browser_screenshot", {"tabId": 2**53}),
    ("task_start", {"tabId": 7}),
    ("browser_scroll", {"tabId": 7}),
    ("browser_scroll", {"tabId": 7, "screens": 1, "to": "top"}),
    ("browser_scroll", {"tabId": 7, "screens": 51}),
    ("browser_scroll", {"tabId": 7, "screens": 1.5}),
    ("browser_scroll", {"tabId": 7, "to": "left"}),
    ("browser_scroll", {"tabId": 7, "untilNothingNew": True, "maxScreens": 0}),
    ("browser_select", {"tabId": 7, "options": ["x"]}),
    ("browser_select", {"tabId": 7, "clickId": 1, "options": "x"}),
    ("browser_select", {"tabId": 7, "clickId": 1, "options": ["x"] * 51}),
    ("browser_hover", {"tabId": 7}),
    ("browser_drag", {"tabId": 7, "clickId": 1}),
    ("browser_drag", {"tabId": 7, "toClickId": 1}),
    ("browser_drag", {"tabId": 7, "clickId": 1, "toClickId": 2, "dx": 5}),
    ("browser_find_text", {"tabId": 7, "text": " "}),
    ("browser_find_text", {"tabId": 7, "text": "x" * 501}),
    ("browser_wait_for_text", {"tabId": 7, "text": "x", "timeoutMs": 30_001}),
    ("task_stop", {"closeTab": "yes"}),
]


@pytest.mark.parametrize("name", SEED | OURS)
def test_an_action_has_exactly_the_parameters_and_timeout_of_the_seed(name: str) -> None:
    required, optional, timeout_ms = (SEED | OURS)[name]
    schema = schema_of(ACTIONS[name].parameters)
    assert sorted(schema.get("required", [])) == required
    assert sorted(schema["properties"]) == sorted(required + optional)
    assert schema["additionalProperties"] is False
    assert ACTIONS[name].timeout_ms == timeout_ms


def test_the_catalogue_has_exactly_the_seeds_actions_and_ours() -> None:
    assert set(ACTIONS) == set(SEED | OURS)


def test_actions_after_which_the_page_may_look_different_are_known() -> None:
    reads = {name for name, action in ACTIONS.items() if not action.may_change_page({})}
    assert reads == {name for name, action in ACTIONS.items() if action.effect == Effect.READ} - {
        "task_start",
        "browser_scroll",
        "browser_wait_for_text",
    }
    assert ACTIONS["browser_find_text"].may_change_page({"text": "x", "scroll": True})


@pytest.mark.parametrize(("name", "args"), INVALID_PARAMETERS, ids=lambda value: str(value)[:40])
def test_wrong_parameters_are_refused(name: str, args: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ACTIONS[name].parameters.model_validate(args)


@pytest.mark.parametrize(
    "key",
    ["Enter", "Shift+Tab", "Control+a", "Control+Shift+z", "Alt+ArrowDown", "a", "+", "Space"],
)
def test_keys_of_a_page_may_be_pressed(key: str) -> None:
    assert PRESS_KEY.parameters.model_validate({"tabId": 7, "key": key})


REFUSED_KEYS = [
    # the clipboard, the browser's own keys, unknown names, text
    *("Control+c", "Control+v", "Control+x", "Shift+Delete", "Shift+Insert"),
    *("Control+w", "Control+t", "Control+Tab", "Alt+ArrowLeft", "Alt+F4", "F5", "Meta+a"),
    *("Return", "ab", "é", "Control+", "", " ", "Enter\n"),
]


@pytest.mark.parametrize("key", REFUSED_KEYS)
def test_keys_of_the_browser_and_of_the_clipboard_are_refused(key: str) -> None:
    with pytest.raises(ValidationError):
        PRESS_KEY.parameters.model_validate({"tabId": 7, "key": key})


def test_integers_written_as_json_floats_are_accepted() -> None:
    parameters = CLICK.parameters.model_validate({"tabId": 7.0, "clickId": 3.0})
    assert parameters.model_dump(by_alias=True)["clickId"] == 3


def test_results_are_camel_case_without_empty_fields() -> None:
    assert Clicked(strategy="cdp_mouse").as_output() == {"clicked": True, "strategy": "cdp_mouse"}
    started = TaskStarted(tabId=7, windowId=1, url="about:blank", warnings=["w"])
    assert started.as_output() == {
        "tabId": 7,
        "windowId": 1,
        "url": "about:blank",
        "warnings": ["w"],
    }


def test_every_action_has_a_browser_tool_with_its_effect_and_timeout() -> None:
    tools = {tool.name: tool for tool in list_actions()}
    assert set(tools) == set(ACTIONS)
    for name, spec in ACTIONS.items():
        tool = tools[name]
        assert (tool.effect, tool.timeout_ms) == (spec.effect, spec.timeout_ms)
        assert tool.input_model is spec.parameters
        assert tool.description


def test_actions_are_registered_but_not_listed_as_tools() -> None:
    assert not {tool.name for tool in list_tools()} & set(ACTIONS)
    assert get_tool("browser_click") is not None


def test_input_going_back_and_uploads_are_not_idempotent() -> None:
    once = {name for name, spec in ACTIONS.items() if not spec.is_idempotent({"submit": True})}
    ours = {
        "browser_select",
        "browser_press_key",
        "browser_drag",
        "browser_go_back",
        "browser_upload",
    }
    assert once == {CLICK.name, TYPE.name} | ours
    assert TYPE.is_idempotent({"text": "x"})


def test_the_actions_import_neither_playwright_nor_django() -> None:
    probe = (
        "import sys; from runners.tools.registry import list_actions; print(len(list_actions()),"
        " 'playwright' in sys.modules, 'django' in sys.modules)"
    )
    output = subprocess.check_output([sys.executable, "-c", probe], text=True)
    assert output.split() == [str(len(ACTIONS)), "False", "False"]
