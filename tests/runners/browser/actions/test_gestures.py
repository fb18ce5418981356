"""Hovering, keys and lists on a task's page: `browser_hover`, `browser_press_key`,
`browser_select`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.browser.lost_input import FALLBACK_WARNINGS, detach
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.task_page import start_on_markup

MENU = """<style>#menu {display: none} #top:hover #menu {display: block}</style>
<div id=top style='width:200px;cursor:pointer'>Menu<div id=menu><a href=#x>Inside</a></div></div>
<script>document.querySelector('#top').addEventListener('mouseover', (event) =>
  log.push(`over:${event.isTrusted}`))</script>"""
LIST = """<select id=s {multiple}><option value=>Choose…<option value=a>Sales<option value=b>Support
<option value=c disabled>Press<option value=d>Other</select>"""


@pytest.fixture
def start(shared_reader: Reader, shared_page_server: PageServer) -> Any:
    """Return a function that starts a task on markup."""
    return lambda markup: start_on_markup(shared_reader, shared_page_server, markup)


def test_a_menu_that_opens_under_the_mouse_can_be_used(start: Any) -> None:
    page = start(MENU)
    index = page.index()
    assert "Inside" not in index
    assert page("hover", clickId=index["Menu"]) == {"hovered": True, "strategy": "cdp_mouse"}
    assert "over:true" in page.log
    assert "Inside" in page.index()


def test_without_real_input_a_script_hovers_and_says_so(start: Any) -> None:
    page = start(MENU)
    number = page.index()["Menu"]
    detach(page)
    output = page("hover", clickId=number)
    assert output == {"hovered": True, "strategy": "dom_events", "warnings": FALLBACK_WARNINGS}
    assert "over:false" in page.log


def test_an_element_in_a_shadow_root_of_a_frame_is_hovered(start: Any) -> None:
    page = start(
        "<iframe srcdoc=\"<my-box></my-box><script>const root = document.querySelector('my-box')"
        ".attachShadow({mode: 'open'}); root.innerHTML = '<button>In</button>';"
        "root.firstChild.onmouseover = () => { root.firstChild.textContent = 'Hovered' }</script>"
        '"></iframe>'
    )
    page("hover", clickId=page.index()["In"])
    assert "Hovered" in page.index()


def test_a_covered_element_is_not_hovered(start: Any) -> None:
    page = start("<button>A</button>")
    number = page.index()["A"]
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('div'),"
        " {style: 'position:fixed;inset:0'}))"
    )
    error = page.error("hover", clickId=number)
    assert (error["errorCode"], error["details"]["reason"]) == ("ELEMENT_NOT_FOUND", "covered")
    assert error["details"]["effect"] == "none"


EDITS = [
    ("End x", "abcx"),
    ("Home X", "Xabc"),
    ("End Backspace", "ab"),
    ("Home Delete", "bc"),
    ("Control+a z", "z"),
    ("End Shift+ArrowLeft -", "ab-"),
    ("Control+a Backspace Control+z", "abc"),
]


def test_keys_edit_the_field_that_has_the_focus(start: Any) -> None:
    page = start("<input id=i aria-label=Name>")
    for keys, value in EDITS:
        page.evaluate("i.value = 'abc'; i.focus()")
        for key in keys.split():
            output = page("press_key", key=key)
            assert output == {"pressed": True, "strategy": "cdp_key", "focus": 'textbox "Name"'}
        assert page.evaluate("i.value") == value, keys


def test_tab_moves_the_focus_and_space_and_arrows_use_what_has_it(start: Any) -> None:
    page = start(
        "<input id=box type=checkbox><input id=range type=range min=0 max=10 value=5>"
        "<button id=b>Go</button>"
    )
    assert page("press_key", key="Tab")["focus"] == "page"
    page("press_key", key="Space")
    assert page.evaluate("box.checked") is True
    page("press_key", key="Tab")
    page("press_key", key="ArrowRight", times=3)
    assert page.evaluate("range.value") == "8"
    page("press_key", key="Shift+Tab")
    assert page.evaluate("document.activeElement.id") == "box"


def test_escape_closes_a_dialog_of_the_page_and_enter_submits_a_form_once(
    start: Any, shared_page_server: PageServer
) -> None:
    page = start("<dialog id=d><button>Close</button></dialog><form action=/sent><input name=q>")
    page.evaluate("d.showModal()")
    page("press_key", key="Escape")
    assert page.evaluate("d.open") is False
    shared_page_server.add("/sent", "<title>Sent</title>")
    shared_page_server.hits["/sent"] = 0
    output = page("press_key", xpath="//form/input", key="Enter", times=3)
    page("wait_for_loaded")
    assert shared_page_server.hits["/sent"] == 1
    assert output["warnings"] == ["The page navigated after 1 of 3 presses."]


@pytest.mark.parametrize(
    ("key", "value"), [("x", "abcx"), ("Backspace", "ab"), ("Enter", "submitted")]
)
def test_without_real_input_a_script_presses_the_keys_whose_effect_it_can_have(
    start: Any, key: str, value: str
) -> None:
    page = start(
        "<form onsubmit=\"event.preventDefault(); i.value = 'submitted'\"><input id=i value=abc>"
    )
    page("press_key", xpath="//input", key="End")
    detach(page)
    output = page("press_key", key=key)
    assert (output["strategy"], output["warnings"]) == ("dom_events", FALLBACK_WARNINGS)
    assert page.evaluate("i.value") == value


def test_a_key_that_only_real_input_can_press_is_not_pressed_without_it(start: Any) -> None:
    page = start("<input id=i value=abc>")
    detach(page)
    error = page.error("press_key", xpath="//input", key="Control+a")
    assert (error["errorCode"], error["details"]["effect"]) == ("CDP_UNAVAILABLE", "none")
    assert not [one for one in page.log if one.startswith("keydown")]


def test_what_cannot_have_the_focus_gets_no_key(start: Any) -> None:
    page = start("<p id=p>Text</p>")
    error = page.error("press_key", xpath="//p", key="Enter")
    assert error["details"] == {
        "reason": "not_focusable",
        "url": error["details"]["url"],
        "effect": "none",
    }
    assert not [one for one in page.log if one.startswith("keydown")]


@pytest.mark.parametrize(("option", "label"), [("Support", "Support"), ("b", "Support")])
def test_an_option_is_selected_by_its_label_or_value(start: Any, option: str, label: str) -> None:
    page = start(LIST.format(multiple=""))
    assert page("select", xpath="//select", options=[option]) == {"selected": [label]}
    assert page.evaluate("s.value") == "b"
    assert page.log.count("change:s:false") == 1


def test_exactly_the_given_options_of_a_list_are_selected(start: Any) -> None:
    page = start(LIST.format(multiple="multiple"))
    both = page("select", xpath="//select", options=["Other", "a"])
    assert both == {"selected": ["Sales", "Other"]}
    assert page("select", xpath="//select", options=["Support"]) == {"selected": ["Support"]}
    assert page("select", xpath="//select", options=[]) == {"selected": []}


@pytest.mark.parametrize("options", [["Sales", "Nothing"], ["Press"], ["Sale"]])
def test_nothing_is_selected_if_an_option_is_missing_or_disabled(
    start: Any, options: list[str]
) -> None:
    page = start(LIST.format(multiple="multiple"))
    error = page.error("select", xpath="//select", options=options)
    assert error["details"]["reason"] == "no_such_option"
    assert error["details"]["options"] == ["Choose…", "Sales", "Support", "Other"]
    assert page.evaluate("s.selectedOptions.length") == 0


@pytest.mark.parametrize(
    ("markup", "options", "reason"),
    [
        (LIST.format(multiple=""), ["Sales", "Support"], "one_option"),
        (LIST.format(multiple=""), [], "one_option"),
        ("<input>", ["x"], "not_a_select"),
    ],
)
def test_what_does_not_take_these_options_is_left_as_it_is(
    start: Any, markup: str, options: list[str], reason: str
) -> None:
    page = start(markup)
    error = page.error("select", xpath="//select|//input", options=options)
    assert (error["errorCode"], error["details"]["reason"]) == ("INVALID_PARAMETER", reason)
    assert not [one for one in page.log if one.startswith("change")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("event", "action", "params"),
    [
        ("mouseover", "hover", {"xpath": "//button"}),
        ("keydown", "press_key", {"xpath": "//button", "key": "a"}),
        ("pointerdown", "drag", {"xpath": "//button", "dx": 20}),
        ("change", "select", {"xpath": "//select", "options": ["Two"]}),
        ("change", "type", {"xpath": "//select", "text": "Two"}),
    ],
)
def test_a_page_that_hangs_because_of_the_input_leaves_the_effect_unknown(
    reader: Reader, page_server: PageServer, event: str, action: str, params: dict[str, Any]
) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<button id=b style='position:fixed;bottom:0;right:0'>Hang</button><select><option>One"
        "<option>Two</select><script>for (const one of document.querySelectorAll('button,select'))"
        f" one.addEventListener('{event}', () => {{ for (;;); }})</script>",
    )
    error = page.error(action, **params)
    assert (error["errorCode"], error["details"]["effect"]) == ("NAVIGATION_TIMEOUT", "unknown")
