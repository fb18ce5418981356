"""Dialogs of a page: answered by the action that raises them, else dismissed; reported once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer
from tests.support.browser.task_page import TaskPage, start_on_markup

ASKING = (
    "<script>let got = []</script>"
    "<button onclick=\"got.push(confirm('Delete all?'))\">Confirm</button>"
    "<button onclick=\"got.push(prompt('Name?', 'Ada'))\">Prompt</button>"
    "<button onclick=\"alert('Saved'); got.push(confirm('Go on?'))\">Alert</button>"
    "<button onclick=\"got.push(confirm('Sure?'), confirm('Really?'))\">Twice</button>"
    "<button onclick=\"setTimeout(() => got.push(confirm('Late?')), 200)\">Late</button>"
    "<form onsubmit=\"got.push(confirm('Send?')); return false\"><input aria-label=Field></form>"
)
CLICKS: dict[str, tuple[str, dict[str, Any] | None, list[object], list[str]]] = {
    "unanswered": ("Confirm", None, [False], ["“Delete all?” in a dialog, which was dismissed."]),
    "accepted": (
        "Confirm",
        {"accept": True},
        [True],
        ["“Delete all?” in a dialog, which was accepted."],
    ),
    "dismissed": (
        "Confirm",
        {"accept": False},
        [False],
        ["“Delete all?” in a dialog, which was dismissed."],
    ),
    "text": (
        "Prompt",
        {"accept": True, "text": "Grace"},
        ["Grace"],
        ["“Name?” in a dialog, which was accepted."],
    ),
    "empty text": (
        "Prompt",
        {"accept": True, "text": ""},
        [""],
        ["“Name?” in a dialog, which was accepted."],
    ),
    "the prompt's own text": (
        "Prompt",
        {"accept": True},
        ["Ada"],
        ["“Name?” in a dialog, which was accepted."],
    ),
    "an alert before it": (
        "Alert",
        {"accept": True},
        [True],
        ["The page showed an alert: “Saved”.", "“Go on?” in a dialog, which was accepted."],
    ),
    "a second question": (
        "Twice",
        {"accept": True},
        [True, False],
        [
            "“Sure?” in a dialog, which was accepted.",
            "“Really?” in a dialog, which was dismissed.",
        ],
    ),
}


@pytest.fixture
def page(reader: Reader, page_server: PageServer) -> TaskPage:
    """Return a task's page with buttons that ask questions."""
    return start_on_markup(reader, page_server, ASKING)


def test_a_click_answers_the_first_question_that_it_raises(page: TaskPage) -> None:
    numbers = page.index()
    for button, dialog, answers, notices in CLICKS.values():
        page.evaluate("got = []")
        output = page("click", clickId=numbers[button], dialog=dialog)
        assert page.evaluate("got") == answers
        assert [notice.removeprefix("The page asked ") for notice in output["warnings"]] == notices
        assert "warnings" not in page("wait_for_loaded")


def test_a_question_that_comes_a_little_later_gets_the_answer_and_a_later_click_none(
    page: TaskPage,
) -> None:
    numbers, asked = page.index(), "new Promise((go) => setInterval(() => got.length && go(), 10))"
    page("click", clickId=numbers["Late"], dialog={"accept": True})
    page("wait_for_loaded")
    page.evaluate(asked)
    assert page.evaluate("got") == [True]
    page("click", xpath="//p | //body", dialog={"accept": True})
    page("click", clickId=numbers["Confirm"])
    assert page.evaluate("got") == [True, False]


def test_enter_in_a_form_answers_the_question_of_its_submission(page: TaskPage) -> None:
    field = page.index()["Field"]
    page("type", clickId=field, text="x", submit=True, dialog={"accept": True})
    assert page.evaluate("got") == [True]


def test_the_next_document_gets_no_answer_that_was_meant_for_the_last_one(
    reader: Reader, page_server: PageServer
) -> None:
    page_server.add("/asks", "<script>window.got = confirm('Install?')</script>")
    page = start_on_markup(reader, page_server, "<a href=/asks>Go</a>")
    page.click("Go", dialog={"accept": True})
    page("wait_for_loaded")
    assert page.evaluate("got") is False
