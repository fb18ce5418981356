"""One answer per idempotency key: for 24 hours, for concurrent calls, and with any responder."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.test import override_settings

from decisions.chat import answers, responder
from decisions.chat.responder import ReplyRequest
from decisions.chat.services import chat
from decisions.errors import IdempotencyConflict, InvalidInput
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, ChatAnswer, Confirmation, Decision
from tests.integration.racing import at_once

RISKY = {
    "user_id": "alice",
    "message": "Delete all rows of the orders table.",
    "idempotency_key": "k",
    "slots": {"environment": "staging", "target": "orders", "success_criteria": "it is empty"},
}


@pytest.fixture
def ask(principal: Principal) -> Callable[..., dict[str, Any]]:
    """Send the risky message: `ask(idempotency_key="other")`."""
    return lambda **changed: asyncio.run(chat(principal=principal, call={**RISKY, **changed}))


Ask = Callable[..., dict[str, Any]]


def test_a_repeated_key_and_body_returns_the_same_answer_without_the_token(ask: Ask) -> None:
    first, again = ask(), ask()
    token = first["trace"]["high_risk_confirmation"].pop("confirm_token")
    assert token
    assert again == first
    assert (
        Decision.objects.count() == Confirmation.objects.count() == ChatAnswer.objects.count() == 1
    )
    assert token not in str(list(ChatAnswer.objects.values()))


@pytest.mark.parametrize(
    "changed", [{"message": "Count them."}, {"session_id": "s"}, {"slots": {}}]
)
def test_the_same_key_with_another_body_is_a_conflict_and_audited(
    ask: Ask, changed: dict[str, Any]
) -> None:
    ask()
    with pytest.raises(IdempotencyConflict):
        ask(**changed)
    assert Decision.objects.count() == 1
    assert AuditEntry.objects.filter(action="chat.refused").count() == 1


@pytest.mark.parametrize("key", ["", " ", "\n"])
def test_a_blank_key_is_refused_with_a_fixed_message(ask: Ask, key: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        ask(idempotency_key=key)
    assert refused.value.message == "idempotency_key is required"


def test_a_key_belongs_to_its_user(ask: Ask) -> None:
    assert ask()["decision_id"] != ask(user_id="bob")["decision_id"]


def test_a_key_is_free_after_a_day_and_expired_answers_are_deleted(ask: Ask) -> None:
    first = ask()
    ChatAnswer.objects.update(created_at=datetime.now(UTC) - timedelta(hours=24, seconds=1))
    assert ask(message="Delete the users table.")["decision_id"] != first["decision_id"]
    ask(idempotency_key="other")
    ChatAnswer.objects.filter(idempotency_key="k").update(
        created_at=datetime.now(UTC) - timedelta(hours=25)
    )
    assert answers.delete_expired_answers() == 1
    assert ChatAnswer.objects.get().idempotency_key == "other"


def test_twenty_concurrent_calls_with_one_key_make_one_decision(ask: Ask) -> None:
    made = at_once([ask] * 20)
    tokens = [one["trace"]["high_risk_confirmation"].pop("confirm_token", None) for one in made]
    assert len([token for token in tokens if token]) == 1
    assert [one for one in made if one != made[0]] == []
    assert Decision.objects.count() == Confirmation.objects.count() == 1
    assert AuditEntry.objects.filter(action="decision.made").count() == 1


def test_concurrent_messages_of_one_session_are_separate_decisions(ask: Ask) -> None:
    calls = [partial(ask, idempotency_key=f"k{n}", session_id="s") for n in range(8)]
    made = at_once(calls)
    assert len({one["decision_id"] for one in made}) == 8


def test_a_refused_message_uses_no_key(ask: Ask) -> None:
    with pytest.raises(InvalidInput):
        ask(message=" ")
    assert not ChatAnswer.objects.exists()


class Poet:
    """A custom responder that counts its replies."""

    said = 0

    def compose(self, decided: ReplyRequest) -> str:
        """Return a reply, slowly enough for other calls to arrive meanwhile."""
        Poet.said += 1
        time.sleep(0.3)
        return f"A poem about {decided.rule}\0"


class Mute:
    """A responder that fails."""

    def compose(self, decided: ReplyRequest) -> str:
        """Raise an error."""
        raise OSError("no model here: sk-secret")


class Sleeper:
    """A responder that does not return in time."""

    over = threading.Event()

    def compose(self, decided: ReplyRequest) -> str:
        """Wait until the test ends."""
        Sleeper.over.wait(60)
        return "too late"


@pytest.fixture
def awake() -> Iterator[None]:
    """Release the sleeper when the test ends."""
    Sleeper.over.clear()
    yield
    Sleeper.over.set()


@override_settings(CONTINUITY_RESPONDER=f"{__name__}.Poet")
def test_a_custom_responder_is_called_once_and_does_not_change_the_decision(ask: Ask) -> None:
    Poet.said = 0
    made = at_once([ask] * 6)
    assert {one["response"] for one in made} == {"A poem about irreversible_deletion\ufffd"}
    assert Poet.said == 1
    assert all(one["trace"]["l4_gate"]["hit"] for one in made)
    assert ask()["response"] == made[0]["response"]


@override_settings(CONTINUITY_RESPONDER=f"{__name__}.Mute")
def test_a_responder_that_fails_is_replaced_by_the_built_in_one(ask: Ask) -> None:
    assert "confirmation" in ask()["response"]
    assert ask()["response"] == ask()["response"]


@pytest.mark.usefixtures("awake")
@override_settings(CONTINUITY_RESPONDER=f"{__name__}.Sleeper")
def test_a_late_responder_is_replaced_by_the_built_in_one(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responder, "TIMEOUT_S", 0.2)
    assert "confirmation" in ask()["response"]


@override_settings(CONTINUITY_RESPONDER=f"{__name__}.Mute")
def test_an_answer_without_a_custom_reply_keeps_the_built_in_text(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that requested the reply died before it stored one."""
    first = ask()
    ChatAnswer.objects.update(worded=False)
    monkeypatch.setattr(answers, "TIMEOUT_S", 0.0)
    monkeypatch.setattr(answers, "_GRACE_S", 0.2)
    assert ask()["response"] == first["response"]
    assert ChatAnswer.objects.get().worded
