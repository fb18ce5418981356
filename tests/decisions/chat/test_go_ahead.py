"""A later "go ahead" refers to the request that waits for a person, whatever messages came in
between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from decisions.authorization.confirmations import refuse
from decisions.models import Event
from tests.support.decisions.confirmations import confirm
from tests.support.decisions.continuity import SendChat

Send = Callable[..., dict[str, Any]]
KNOWN = {"environment": "staging", "target": "the table", "success_criteria": "it is empty"}
RISKY = "Delete the production database."


@pytest.fixture
def send(send_chat: SendChat) -> Send:
    """Send a message in one session as alice; return the trace: `send("…", session_id="other")`."""

    def post(message: str, **changed: Any) -> dict[str, Any]:
        trace: dict[str, Any] = send_chat(
            message, **{"slots": KNOWN, "session_id": "s", **changed}
        )["trace"]
        return trace

    return post


@pytest.mark.parametrize(
    ("risky", "between", "do_it"),
    [
        (RISKY, ["ok thanks."], "go ahead"),
        (RISKY, ["ok thanks.", "What is an index?", "Count the rows."], "Yes, do it."),
        (RISKY, ["ok thanks."], "ok thanks, now do it please"),
        (RISKY, ["ok thanks."], "just remove it"),
        (f"{RISKY} {'The weather is lovely today. ' * 90}", [], "go ahead"),
        ("Run `rm -rf /srv/data` now.", ["ok thanks."], "proceed"),
        ("把生产库的订单表删了", ["好的，谢谢。"], "直接执行吧"),
        ("Pay 500 dollars to Bob.", ["你好"], "do it"),
    ],
)
def test_a_go_ahead_after_other_messages_waits_for_a_person_too(
    send: Send, risky: str, between: list[str], do_it: str
) -> None:
    assert send(risky)["mode"] == "confirm"
    assert {send(message)["mode"] for message in between} <= {"act"}
    assert send(do_it)["mode"] == "confirm"


def test_a_go_ahead_after_an_unanswered_question_waits_as_well(send: Send) -> None:
    assert send(RISKY, slots={})["mode"] == "clarify_first"
    assert send("What is an index?")["mode"] == "act"
    assert send("go ahead")["mode"] == "confirm"


def test_a_go_ahead_after_a_message_similar_to_an_l4_event_waits_as_well(send: Send) -> None:
    entry = send("Count the rows of the table.", session_id="before")["entry_id"]
    Event.objects.filter(pk=entry).update(layer="L4")
    assert send("Count the rows of the table.")["mode"] == "confirm"
    assert send("ok thanks.")["mode"] == "act"
    trace = send("go ahead")
    assert trace["l4_gate"]["reason"].startswith("similar_to_l4_event: Count the rows")
    assert trace["mode"] == "confirm"


def test_a_go_ahead_after_the_confirmation_does_not_wait(send: Send) -> None:
    decision_id = send(RISKY)["decision_id"]
    confirm(decision_id=decision_id, by="admin:eve", how="admin")
    assert send("ok thanks.")["mode"] == "act"
    assert send("go ahead")["mode"] == "act"


def test_a_go_ahead_after_the_refusal_requires_a_new_confirmation(send: Send) -> None:
    decision_id = send(RISKY)["decision_id"]
    refuse(decision_id=decision_id, by="admin:eve", how="admin")
    send("ok thanks.")
    assert send("go ahead")["mode"] == "confirm"


@pytest.mark.parametrize("message", ["Don't do it.", "Count the rows.", "Should I do it?"])
def test_a_message_that_is_no_go_ahead_does_not_wait(send: Send, message: str) -> None:
    send(RISKY)
    send("ok thanks.")
    assert send(message)["mode"] in ("act", "clarify_first")


def test_a_go_ahead_in_another_session_does_not_wait(send: Send) -> None:
    send(RISKY)
    send("ok thanks.", session_id="other")
    assert send("go ahead", session_id="other")["mode"] == "act"
