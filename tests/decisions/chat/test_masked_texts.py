"""Chat decides on a message as it was sent; its rows and responses have the masked one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from decisions.authorization.sealed_arguments import open_arguments
from decisions.models import (
    AuditEntry,
    ChatAnswer,
    Confirmation,
    Conversation,
    Decision,
    Event,
    Outcome,
)
from tests.support.decisions.continuity import SendChat

Send = Callable[..., dict[str, Any]]
KNOWN = {"environment": "staging", "target": "the table", "success_criteria": "the count is right"}
HIDDEN = "cookie=a1; delete everything in the production database"


@pytest.fixture
def send(send_chat: SendChat) -> Send:
    """Send a message as alice in one session; return the response: `send("…", slots={})`."""
    return lambda message, **changed: send_chat(
        message, **{"slots": KNOWN, "session_id": "s", **changed}
    )


def mode_of(response: dict[str, Any]) -> str:
    return str(response["trace"]["mode"])


@pytest.mark.parametrize(
    "message",
    [
        HIDDEN,
        "Authorization: x, now drop all tables of the production database",
        "Use password='; delete all files of the server;' now",
        "Count the rows; token=$(rm -rf /srv/data)",
    ],
)
def test_words_that_are_masked_are_judged(send: Send, message: str) -> None:
    assert mode_of(send(message)) == "confirm"


def test_masked_words_of_an_answer_are_judged(send: Send) -> None:
    assert mode_of(send("Run the script.", slots={})) == "clarify_first"
    answer = "1. staging 2. the table 3. set-cookie: x; then delete all backups"
    assert mode_of(send(answer)) == "confirm"


def test_a_pending_request_is_judged_by_its_masked_words_too(send: Send) -> None:
    assert mode_of(send(HIDDEN, slots={})) == "clarify_first"
    assert mode_of(send("1. staging 2. the table 3. the count is right")) == "confirm"


def test_a_masked_environment_is_judged(send: Send) -> None:
    slots = {**KNOWN, "environment": "cookie=production"}
    assert mode_of(send("Deploy the release.", slots=slots)) == "confirm"


@pytest.mark.parametrize("between", [[], ["ok thanks.", "What is an index?"]])
def test_a_go_ahead_refers_to_masked_words(send: Send, between: list[str]) -> None:
    assert mode_of(send(HIDDEN)) == "confirm"
    assert {mode_of(send(message)) for message in between} <= {"act"}
    assert mode_of(send("go ahead")) == "confirm"


def test_a_go_ahead_refers_to_masked_words_of_a_question(send: Send) -> None:
    assert mode_of(send("cookie=a1; how would I drop the production database?")) == "act"
    assert mode_of(send("do it")) == "confirm"


def test_masked_words_count_for_the_similarity_to_an_l4_event(send: Send) -> None:
    risky = "Count all the rows of the large table and compare them with the small one."
    entry = send(risky, session_id="before")["trace"]["entry_id"]
    Event.objects.filter(pk=entry).update(layer="L4")
    assert mode_of(send(f"cookie=a; {risky}")) == "confirm"


def test_a_request_with_a_secret_is_similar_to_itself(send: Send) -> None:
    message = f"Count the rows, password={'x7' * 60}"
    entry = send(message, session_id="before")["trace"]["entry_id"]
    Event.objects.filter(pk=entry).update(layer="L4")
    assert mode_of(send(message)) == "confirm"


def test_the_masked_words_are_in_no_row_and_in_no_response(send: Send) -> None:
    secret = "hunter2xyz"
    responses = [
        send(f"password={secret}; delete everything", slots={}),
        send(f"1. staging 2. cookie: {secret}; the table 3. the count is right"),
        send("go ahead"),
        send(f"token: {secret}, delete all backups", slots={**KNOWN, "api_key": secret}),
        send("ok thanks."),
    ]
    assert secret not in json.dumps(responses)
    for model in (AuditEntry, ChatAnswer, Confirmation, Conversation, Decision, Event, Outcome):
        rows = [*model._default_manager.values()]
        assert rows
        assert secret not in str(rows)


def test_two_values_that_are_masked_alike_are_confirmed_apart(send: Send) -> None:
    slots = [{**KNOWN, "api_key": value, "password": "same"} for value in ("first", "second")]
    numbers = [
        send("Delete the production database.", slots=one, session_id=one["api_key"])["decision_id"]
        for one in slots
    ]
    decisions = [Decision.objects.get(pk=number) for number in numbers]
    assert [open_arguments(one)["slots"] for one in decisions] == slots
    assert [one.arguments["slots"]["api_key"] for one in decisions] == ["***", "***"]
    assert len({one.subject_digest for one in decisions}) == 2


def test_an_answer_to_a_request_that_cannot_be_decrypted_begins_a_new_request(send: Send) -> None:
    assert mode_of(send(HIDDEN, slots={})) == "clarify_first"
    Conversation.objects.update(sealed_request=b"of another key", sealed_context=None)
    response = send("staging, the table, the count is right")
    assert response["trace"]["task_type"] == "execution"
    decision = Decision.objects.get(pk=response["decision_id"])
    assert decision.arguments["message"] == "staging, the table, the count is right"
