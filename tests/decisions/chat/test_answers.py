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
from django.db import connection
from django.test import override_settings

from decisions.chat import answers, responder, services
from decisions.chat.concurrent_changes import ConcurrentChanges, read_concurrent_changes
from decisions.chat.responder import ReplyRequest
from decisions.chat.services import chat
from decisions.foundation.errors import IdempotencyConflict, InvalidInput
from decisions.identity.principals import Principal
from decisions.memory.owner import Owner
from decisions.models import AuditEntry, ChatAnswer, Confirmation, Decision
from tests.support.runs.concurrent_calls import at_once

RISKY = {
    "user_id": "alice",
    "message": "Delete all rows of the orders table.",
    "idempotency_key": "k",
    "slots": {"environment": "staging", "target": "orders", "success_criteria": "it is empty"},
}


@pytest.fixture
def send(principal: Principal) -> Callable[..., dict[str, Any]]:
    """Send the risky message: `send(idempotency_key="other")`."""
    return lambda **changed: asyncio.run(chat(principal=principal, call={**RISKY, **changed}))


Send = Callable[..., dict[str, Any]]


def test_a_repeated_key_and_body_returns_the_same_answer_without_the_token(send: Send) -> None:
    first, again = send(), send()
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
    send: Send, changed: dict[str, Any]
) -> None:
    send()
    with pytest.raises(IdempotencyConflict):
        send(**changed)
    assert Decision.objects.count() == 1
    assert AuditEntry.objects.filter(action="chat.refused").count() == 1


@pytest.mark.parametrize("key", ["", " ", "\n"])
def test_a_blank_key_is_refused_with_a_fixed_message(send: Send, key: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        send(idempotency_key=key)
    assert raised.value.message == "idempotency_key is required"


def test_a_key_belongs_to_its_user(send: Send) -> None:
    assert send()["decision_id"] != send(user_id="bob")["decision_id"]


def test_a_key_is_free_after_a_day_and_expired_answers_are_deleted(send: Send) -> None:
    first = send()
    ChatAnswer.objects.update(created_at=datetime.now(UTC) - timedelta(hours=24, seconds=1))
    assert send(message="Delete the users table.")["decision_id"] != first["decision_id"]
    send(idempotency_key="other")
    ChatAnswer.objects.filter(idempotency_key="k").update(
        created_at=datetime.now(UTC) - timedelta(hours=25)
    )
    assert answers.delete_expired_answers() == 1
    assert ChatAnswer.objects.get().idempotency_key == "other"


def test_twenty_concurrent_calls_with_one_key_make_one_decision(send: Send) -> None:
    responses = at_once([send] * 20)
    tokens = [
        one["trace"]["high_risk_confirmation"].pop("confirm_token", None) for one in responses
    ]
    assert len([token for token in tokens if token]) == 1
    assert [one for one in responses if one != responses[0]] == []
    assert Decision.objects.count() == Confirmation.objects.count() == 1
    assert AuditEntry.objects.filter(action="decision.made").count() == 1


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one lock for all rows")
def test_a_call_waits_for_the_concurrent_one_with_its_key(
    send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    callers, both, lock = set[int](), threading.Event(), Owner.lock

    def arrive() -> None:
        callers.add(threading.get_ident())
        if len(callers) == 2:
            both.set()

    def arrive_and_lock(owner: Owner) -> None:
        arrive()
        lock(owner)

    def read_and_wait_for_the_other_call(*about: Any) -> ConcurrentChanges:
        found = read_concurrent_changes(*about)
        arrive()
        assert both.wait(20), "the other call neither waits for the lock nor has read"
        return found

    monkeypatch.setattr(Owner, "lock", arrive_and_lock)
    monkeypatch.setattr(services, "read_concurrent_changes", read_and_wait_for_the_other_call)
    first, second = at_once([send, send])
    assert first["decision_id"] == second["decision_id"]
    assert Decision.objects.count() == 1


def test_concurrent_messages_of_one_session_are_separate_decisions(send: Send) -> None:
    calls = [partial(send, idempotency_key=f"k{n}", session_id="s") for n in range(8)]
    responses = at_once(calls)
    assert len({one["decision_id"] for one in responses}) == 8


def test_a_refused_message_uses_no_key(send: Send) -> None:
    with pytest.raises(InvalidInput):
        send(message=" ")
    assert not ChatAnswer.objects.exists()


class CountingResponder:
    """A custom responder that counts its replies."""

    replies = 0

    def compose(self, decided: ReplyRequest) -> str:
        """Return a reply, slowly enough for other calls to arrive meanwhile."""
        CountingResponder.replies += 1
        time.sleep(0.3)
        return f"A poem about {decided.rule}\0"


class FailingResponder:
    """A responder that fails."""

    def compose(self, decided: ReplyRequest) -> str:
        """Raise an error."""
        raise OSError("no model here: sk-secret")


class LateResponder:
    """A responder that does not return in time."""

    released = threading.Event()

    def compose(self, decided: ReplyRequest) -> str:
        """Wait until the test ends."""
        LateResponder.released.wait(60)
        return "too late"


@pytest.fixture
def release_late_responder() -> Iterator[None]:
    """Release the sleeper when the test ends."""
    LateResponder.released.clear()
    yield
    LateResponder.released.set()


@override_settings(CONTINUITY_RESPONDER=f"{__name__}.CountingResponder")
def test_a_custom_responder_is_called_once_and_does_not_change_the_decision(send: Send) -> None:
    CountingResponder.replies = 0
    responses = at_once([send] * 6)
    assert {one["response"] for one in responses} == {"A poem about irreversible_deletion\ufffd"}
    assert CountingResponder.replies == 1
    assert all(one["trace"]["l4_gate"]["hit"] for one in responses)
    assert send()["response"] == responses[0]["response"]


@override_settings(CONTINUITY_RESPONDER=f"{__name__}.FailingResponder")
def test_a_responder_that_fails_is_replaced_by_the_built_in_one(send: Send) -> None:
    assert "confirmation" in send()["response"]
    assert send()["response"] == send()["response"]


@pytest.mark.usefixtures("release_late_responder")
@override_settings(CONTINUITY_RESPONDER=f"{__name__}.LateResponder")
def test_a_late_responder_is_replaced_by_the_built_in_one(
    send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responder, "TIMEOUT_S", 0.2)
    assert "confirmation" in send()["response"]


@override_settings(CONTINUITY_RESPONDER=f"{__name__}.FailingResponder")
def test_an_answer_without_a_custom_reply_keeps_the_built_in_text(
    send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that requested the reply died before it stored one."""
    first = send()
    ChatAnswer.objects.update(worded=False)
    monkeypatch.setattr(answers, "TIMEOUT_S", 0.0)
    monkeypatch.setattr(answers, "_GRACE_S", 0.2)
    assert send()["response"] == first["response"]
    assert ChatAnswer.objects.get().worded
