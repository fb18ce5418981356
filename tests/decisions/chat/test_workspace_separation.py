"""Chat keeps workspaces and users apart: sessions, idempotency keys, and the past of a message."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from decisions.chat.history.retrieval import FAILURE_PENALTY
from decisions.chat.services import chat
from decisions.identity.principals import Principal
from decisions.memory.outcomes import report_outcome
from decisions.models import Conversation, Decision, Event
from tests.support.decisions.continuity import HARMLESS, KNOWN_SLOTS, RISKY

Send = Callable[..., dict[str, Any]]
OTHER_OWNERS = pytest.mark.parametrize("other_owner", ["another workspace", "another user"])
_numbers = itertools.count()


def send(principal: Principal, message: str, **changed: Any) -> dict[str, Any]:
    """Send a message for alice, with a new key and all slots."""
    call = {
        "user_id": "alice",
        "message": message,
        "idempotency_key": f"key {next(_numbers)}",
        "slots": KNOWN_SLOTS,
        **changed,
    }
    return asyncio.run(chat(principal=principal, call=call))


def report_failure(principal: Principal, user_id: str, decision_id: int) -> None:
    """Report that what was decided failed, as it did before."""
    report = {
        "decision_id": decision_id,
        "user_id": user_id,
        "outcome_status": "failed",
        "outcome_note": "",
        "failure_type": "repeat_error",
    }
    report_outcome(principal=principal, call=report)


@pytest.fixture
def send_for_another_owner(other_owner: str, principal: Principal, outsider: Principal) -> Send:
    """Send messages for another owner: alice in another workspace, or bob in the same one."""
    sender = outsider if other_owner == "another workspace" else principal
    user_id = "alice" if other_owner == "another workspace" else "bob"
    return lambda message, **changed: send(sender, message, user_id=user_id, **changed)


@OTHER_OWNERS
def test_a_session_of_the_same_name_is_another_conversation(
    principal: Principal, send_for_another_owner: Send
) -> None:
    send_for_another_owner(RISKY, slots={}, session_id="s")
    send(principal, "staging", slots={}, session_id="s")
    assert Conversation.objects.filter(session_id="s").count() == 2


@OTHER_OWNERS
def test_the_same_key_is_another_message(
    principal: Principal, send_for_another_owner: Send
) -> None:
    send_for_another_owner(HARMLESS, idempotency_key="k")
    assert send(principal, RISKY, idempotency_key="k")["trace"]["mode"] == "confirm"
    assert Decision.objects.count() == 2


@OTHER_OWNERS
def test_an_event_of_another_owner_is_not_compared(
    principal: Principal, send_for_another_owner: Send
) -> None:
    send_for_another_owner(HARMLESS)
    Event.objects.update(layer="L4")
    assert send(principal, HARMLESS)["trace"]["l4_gate"]["top"] == 0.0


@OTHER_OWNERS
def test_a_failure_of_another_owner_lowers_no_score(
    other_owner: str, principal: Principal, outsider: Principal, send_for_another_owner: Send
) -> None:
    def score() -> float:
        return float(send(principal, "Count the rows again.")["decision"]["score"])

    without_failures = score()
    failed = send_for_another_owner("Run the unit tests.")["decision_id"]
    if other_owner == "another workspace":
        report_failure(outsider, "alice", failed)
    else:
        report_failure(principal, "bob", failed)
    assert score() == without_failures
    report_failure(principal, "alice", send(principal, "Run the unit tests.")["decision_id"])
    assert score() == pytest.approx(without_failures - FAILURE_PENALTY, abs=0.1)
