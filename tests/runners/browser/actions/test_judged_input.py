"""The element that was judged gets the input, if it is still as it was; no other one ever does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from runners.actions.judged import JudgedElement, expected_element
from runners.invocation.invoke import invoke
from runners.invocation.judge import judge_element, request_for
from runners.tools.base import ToolCall, ToolResult
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.task_page import TaskPage, start_on_markup

FORM = """<form id=f method=post action="/drafts?key=k1#top"><input id=i aria-label=Title>
<button id=b type=button onclick="0">Save</button></form><a id=a href="/more?x=1">More (3)</a>"""
Use = Callable[..., ToolResult]


def judged_and_used(
    page: TaskPage, tool: str, args: dict[str, Any], change: str = "", *, compares: bool = True
) -> tuple[JudgedElement, ToolResult]:
    """Judge the element of a call, change the page, and make the call."""
    reader, asked = page.read, request_for(tool, args)
    assert asked is not None
    judged = reader.wait(judge_element(asked, reader.context()))
    if change:
        page.evaluate(f"{{ {change} }}")
    expected = expected_element(asked, judged, compares=compares)
    context = replace(reader.context(), judged=expected)
    return judged, reader.wait(invoke(ToolCall(tool, args), context))


@pytest.mark.parametrize(
    ("tool", "args", "change"),
    [
        ("browser_click", {"xpath": "//button"}, "b.textContent = 'Delete'"),
        ("browser_click", {"xpath": "//button"}, "b.replaceWith(b.cloneNode(true))"),
        ("browser_press_key", {"xpath": "//input", "key": "Enter"}, "f.action = '/account'"),
        ("browser_type", {"xpath": "//input", "text": "x", "submit": True}, "f.method = 'get'"),
        (
            "click_element",
            {"locator": {"mode": "selector", "selector": "button"}},
            "b.insertAdjacentHTML('beforebegin', '<button id=d type=button>Pay</button>')",
        ),
    ],
    ids=["name", "node", "form", "method", "another"],
)
def test_a_changed_element_gets_no_input(
    reader: Reader, page_server: PageServer, tool: str, args: dict[str, Any], change: str
) -> None:
    page = start_on_markup(reader, page_server, FORM)
    tab = {"tabId": page.tab_id} if tool.startswith("browser_") else {"timeoutMs": 500}
    _, result = judged_and_used(page, tool, {**tab, **args}, change)
    details = (result.error or {})["details"]
    assert details["reason"] == ("gone" if "replaceWith" in change else "changed")
    assert details["effect"] == "none"
    assert not [one for one in page.log if one.startswith(("click", "keydown", "input"))]


def test_an_element_that_is_as_it_was_gets_the_input_and_its_facts_are_complete(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, FORM)
    enter = {"tabId": page.tab_id, "xpath": "//input", "key": "Enter"}
    asked = request_for("browser_press_key", enter)
    assert asked is not None
    facts = reader.wait(judge_element(asked, reader.context())).facts
    here = page_server.url("/").removesuffix("/")
    assert [(one.method, one.action) for one in facts.submits] == [
        ("post", f"{here}/drafts?key=k1")
    ]
    assert (facts.page, facts.frame) == (f"{here}/task", f"{here}/task")
    judged, result = judged_and_used(
        page, "browser_click", {"tabId": page.tab_id, "xpath": "//button"}, "a.textContent = 'X'"
    )
    assert (result.ok, judged.submits) == (True, False)
    assert page.log.count("click:b:true") == 1


def test_a_click_at_a_point_presses_the_judged_element_only(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, FORM)
    page("screenshot")
    box = page.evaluate("(() => { const {x, y} = b.getBoundingClientRect(); return [x, y] })()")
    point = {"tabId": page.tab_id, "x": round(box[0]) + 5, "y": round(box[1]) + 5}
    _, moved = judged_and_used(page, "browser_click", point, "b.style.marginTop = '200px'")
    assert (moved.error or {})["details"]["effect"] == "none"
    assert not [one for one in page.log if one.startswith("click")]
    page.evaluate("b.style.marginTop = ''")
    _, result = judged_and_used(page, "browser_click", point)
    assert result.ok
    assert page.log.count("click:b:true") == 1


SAVE = "<form><button>Save</button></form>"
LABEL = "<label for=b>Save</label>"
WAYS_TO_SUBMIT = {  # markup, that of the shadow root of x-c, and what is used
    "nested shadow root": ("<div id=d><p><x-c></x-c></p></div>", SAVE, "//div[@id='d']"),
    "slot": (f"<x-c>{SAVE}</x-c>", "<div><slot></slot></div>", "//x-c"),
    "body": ("<x-c></x-c>", SAVE, "//body"),
    "label for": (
        f"<div id=d>{LABEL}</div><form><button id=b>S</button></form>",
        "",
        "//div[@id='d']",
    ),
    "label in a shadow root": (
        "<x-c></x-c>",
        f"{LABEL}<form><button id=b>S</button></form>",
        "//x-c",
    ),
    "list": ("<form><select size=3><option>a</select></form>", "", "//select"),
    "text of several lines": ("<form><textarea></textarea></form>", "", "//textarea"),
}


def test_whatever_a_press_may_submit_is_judged(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(reader, page_server, "<div id=t></div>")
    found = {}
    for name, (markup, shadow, xpath) in WAYS_TO_SUBMIT.items():
        page.evaluate(f"t.innerHTML = {markup!r}")
        if shadow:
            root = "document.querySelector('x-c').attachShadow({mode: 'open'})"
            page.evaluate(f"{root}.innerHTML = {shadow!r}")
        is_key = name in ("list", "text of several lines")
        tool, key = (
            ("browser_press_key", {"key": "Shift+Enter"}) if is_key else ("browser_click", {})
        )
        asked = request_for(tool, {"tabId": page.tab_id, "xpath": xpath, **key})
        assert asked is not None
        found[name] = reader.wait(judge_element(asked, reader.context())).submits
    assert found == dict.fromkeys(WAYS_TO_SUBMIT, True)


def test_an_ancestor_that_submits_only_since_it_was_judged_gets_no_press(
    reader: Reader, page_server: PageServer
) -> None:
    page = start_on_markup(reader, page_server, "<div id=d><button type=button>A</button></div>")
    div = {"tabId": page.tab_id, "xpath": "//div[@id='d']"}
    added = f"d.innerHTML = {SAVE!r}"
    judged, result = judged_and_used(page, "browser_click", div, added, compares=False)
    details = (result.error or {})["details"]
    assert (judged.submits, details["reason"], details["effect"]) == (False, "changed", "none")
    assert not [one for one in page.log if one.startswith(("click", "mousedown"))]


NAMES = [  # element, its name before and after, whether a confirmation covers both
    ("b", "Pay 100 kr", "Pay 100000 kr", False),
    ("b", "Delete 1 file", "Delete 50000 file", False),
    ("b", "Terms apply. " * 25 + "Cancel", "Terms apply. " * 25 + "Buy now", False),
    ("b", "Delete (3)", "Delete (500)", False),
    ("b", "Keep until 0:10:59", "Keep until 0:00:01", False),
    ("d", "<i tabindex=0>Read</i>", "<i tabindex=0>Delete</i>", False),
    ("d", "<a href=/x>Delete (3)</a>", "<a href=/x>Delete (500)</a>", False),
    ("s", "Delete (3)", "Delete (500)", False),
    ("l", "Pay $ (3)", "Pay $ (500)", False),
    ("l", "Inbox (3), 0:10:59 (1)", "Inbox (12), 0:10:59 (1)", False),
    ("l", "Inbox at 0:10:59 (3)", "Inbox at 0:10:58 (12)", True),
]


def test_a_confirmed_element_keeps_its_whole_name(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(
        reader,
        page_server,
        "<button id=b type=button></button><div id=d></div>"
        "<a id=s href='#here'></a><br><a id=l href='/inbox'></a>",
    )
    found = []
    for place, before, after, _ in NAMES:
        page.evaluate(f"{place}.innerHTML = {before!r}")
        args = {"tabId": page.tab_id, "xpath": f"//*[@id='{place}']"}
        change = f"{place}.innerHTML = {after!r}"
        used = judged_and_used(page, "browser_click", args, change)[1]
        found.append((place, before, after, used.ok))
    assert found == NAMES


PAY = """<form action=/drafts><input type=hidden id=h name=to value=alice><input type=hidden id=c
name=csrf value=0123456789abcdef><input type=password id=w name=pw value=hunter22><button id=b
type=submit name=sum value=100>Pay</button></form>"""
FIELD_CHANGES = [("h.value = 'mallory'", False), ("b.value = 999", False), ("w.value = 1", False)]


def test_a_confirmed_form_sends_what_was_shown(reader: Reader, page_server: PageServer) -> None:
    page = start_on_markup(reader, page_server, PAY)
    page.evaluate("{ document.forms[0].onsubmit = () => false }")
    args = {"tabId": page.tab_id, "xpath": "//button"}
    found = []
    for change, _ in [*FIELD_CHANGES, ("c.value += 'x'", True)]:
        judged, result = judged_and_used(page, "browser_click", args, change)
        found.append((change, result.ok))
        assert "hunter22" not in str(judged)
    assert found == [*FIELD_CHANGES, ("c.value += 'x'", True)]
    assert "sum=999; to=mallory; pw=***" in judged.shown()["sent"]
