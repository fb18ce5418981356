"""What was asked for and waits for a person is what a later "go ahead" is about, whatever was said
in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from decisions.authorization import confirmations
from decisions.chat.services import chat
from decisions.identity.principals import Principal
from decisions.models import Event

Say = Callable[..., dict[str, Any]]
KNOWN = {"environment": "staging", "target": "the table", "success_criteria": "it is told"}
RISKY = "Delete the production database."


@pytest.fixture
def say(principal: Principal) -> Say:
    """Say something in one session as alice; return the trace: `say("…", session_id="other")`."""
    count = iter(range(1000))

    def send(message: str, **changed: Any) -> dict[str, Any]:
        call = {
            "user_id": "alice",
            "message": message,
            "idempotency_key": f"k{next(count)}",
            "slots": KNOWN,
            "session_id": "s",
            **changed,
        }
        trace: dict[str, Any] = asyncio.run(chat(principal=principal, call=call))["trace"]
        return trace

    return send


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
def test_a_go_ahead_after_something_else_waits_for_a_person_too(
    say: Say, risky: str, between: list[str], do_it: str
) -> None:
    assert say(risky)["mode"] == "confirm"
    assert {say(message)["mode"] for message in between} <= {"act"}
    assert say(do_it)["mode"] == "confirm"


def test_what_was_only_asked_back_about_waits_as_well(say: Say) -> None:
    assert say(RISKY, slots={})["mode"] == "clarify_first"
    assert say("What is an index?")["mode"] == "act"
    assert say("go ahead")["mode"] == "confirm"


def test_what_was_like_a_grave_event_waits_as_well(say: Say) -> None:
    entry = say("Count the rows of the table.", session_id="before")["entry_id"]
    Event.objects.filter(pk=entry).update(layer="L4")
    assert say("Count the rows of the table.")["mode"] == "confirm"
    assert say("ok thanks.")["mode"] == "act"
    then = say("go ahead")
    assert then["l4_gate"]["reason"].startswith("similar_to_l4_event: Count the rows")
    assert then["mode"] == "confirm"


def test_once_confirmed_it_waits_no_more(say: Say) -> None:
    asked = say(RISKY)["decision_id"]
    confirmations.confirm(decision_id=asked, by="admin:eve", how="admin")
    assert say("ok thanks.")["mode"] == "act"
    assert say("go ahead")["mode"] == "act"


def test_once_refused_it_has_to_be_asked_for_anew(say: Say) -> None:
    asked = say(RISKY)["decision_id"]
    confirmations.refuse(decision_id=asked, by="admin:eve", how="admin")
    say("ok thanks.")
    assert say("go ahead")["mode"] == "confirm"


@pytest.mark.parametrize("message", ["Don't do it.", "Count the rows.", "Should I do it?"])
def test_what_is_no_go_ahead_is_let_pass(say: Say, message: str) -> None:
    say(RISKY)
    say("ok thanks.")
    assert say(message)["mode"] in ("act", "clarify_first")


def test_another_session_is_about_something_else(say: Say) -> None:
    say(RISKY)
    say("ok thanks.", session_id="other")
    assert say("go ahead", session_id="other")["mode"] == "act"
