"""What a person who confirms a browser action sees of the page for which it was chosen."""

from __future__ import annotations

from typing import Any

import pytest

from decisions.authorization.authorize import ToolCallRequest
from runs.calls.shown_page import subject_of, with_shown_page
from runs.models import Run
from runs.task_templates.base import StepView

URL = "https://shop.example/cart"


def observed(text: str, *, tab_id: int = 7, start: int | None = None) -> StepView:
    """Return the step of an agent's browser_observe."""
    args = {"tabId": tab_id, **({} if start is None else {"from": start})}
    result = {"url": URL, "title": "Cart", "text": text}
    step_input = {"kind": "call", "tool": "browser_observe", "args": args}
    return StepView(0, "step", step_input, True, {"ok": True, "result": result}, None)


def shown(journal: list[StepView], tool: str = "browser_click", **args: Any) -> ToolCallRequest:
    """Return the request of an action of the agent's tab 7, as it is shown."""
    request = ToolCallRequest("p", "t", "w", tool, {"tabId": 7, **args})
    return with_shown_page(Run(), request, journal)


def test_the_newest_observation_of_the_tab_names_the_page_and_the_elements() -> None:
    newest = observed('[1] link "Home"\n[12]* button "Order now"\n[13] list "Bin"')
    journal = [observed('[12] button "Old"'), newest, observed('[12] link "Else"', tab_id=8)]
    request = shown(journal, "browser_drag", clickId=12, toClickId=13)
    fields = {"page": f"Cart, {URL}", "element": '[12] button "Order now"'}
    assert request.shown_args == {**request.args, **fields, "toElement": '[13] list "Bin"'}
    assert subject_of(request) == (
        f' on [12] button "Order now" and [13] list "Bin" of the page Cart, {URL}'
    )


def test_an_element_is_found_in_the_observation_that_the_newest_continues() -> None:
    first = observed('[12] button "Order now"')
    assert "Order now" in subject_of(shown([first, observed("More", start=40)], clickId=12))
    assert (
        subject_of(shown([first, observed("Reloaded")], clickId=12)) == f" of the page Cart, {URL}"
    )


def test_a_line_that_looks_like_the_element_hides_it_not() -> None:
    lines = '[12] button "Cancel"\n[12] button "Order now"'
    subject = subject_of(shown([observed(lines)], clickId=12))
    assert '[12] button "Cancel" or [12] button "Order now"' in subject


@pytest.mark.parametrize(
    "text", ['Read [12] button "Cancel"', '\\[12] button "Cancel"'], ids=["within", "escaped"]
)
def test_a_text_of_the_page_is_no_element(text: str) -> None:
    journal = [observed(text)]
    assert "Cancel" not in subject_of(shown(journal, clickId=12))


def test_other_calls_and_unseen_pages_are_shown_with_their_arguments() -> None:
    request = ToolCallRequest("p", "t", "w", "write_to_file", {"path": "a"})
    assert with_shown_page(Run(), request, []) is request
    assert shown([], clickId=12).shown_args == {"tabId": 7, "clickId": 12}


@pytest.mark.parametrize(
    ("line", "is_masked"),
    [
        ('[4] input password "Word" = ""', True),
        ("[4]* input password", True),
        ('[4] input "Code" = *** required', True),
        ('[4] input "API key" = ""', True),
        ('[4] input "密码" = ""', True),
        ('[4] input "Name" = ""', False),
        ('[4] textarea "Passage" = "password"', False),
        ('[4] input "Name" = "" → /password', False),
    ],
)
def test_a_text_that_is_typed_into_a_secret_field_is_masked(line: str, is_masked: bool) -> None:
    request = shown([observed(line)], "browser_type", clickId=4, text="hunter22")
    assert request.args["text"] == "hunter22"
    texts = str(request.shown_args), str(request.display_args)
    assert ["hunter22" in text for text in texts] == [not is_masked] * 2


def test_a_text_for_a_field_that_an_xpath_calls_a_password_is_masked() -> None:
    path = "//input[@type='password']"
    request = shown([observed("Log in")], "browser_type", xpath=path, text="hunter22")
    assert "hunter22" not in str((request.shown_args, request.display_args))
