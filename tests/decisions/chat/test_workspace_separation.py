"""Chat keeps workspaces and users apart: sessions, idempotency keys, and the past of a message."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from decisions.chat.services import chat
from decisions.continuity.outcomes import report_outcome
from decisions.identity.principals import Principal
from decisions.models import Conversation, Decision, Event
from tests.support.decisions.continuity import HARMLESS, KNOWN_SLOTS, RISKY

Send = Callable[..., dict[str, Any]]
BESIDE = pytest.mark.parametrize("beside", ["another workspace", "another user"])
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


@pytest.fixture
def send_beside(beside: str, principal: Principal, outsider: Principal) -> Send:
    """Send messages for alice in another workspace, or for bob in the same one."""
    sender = outsider if beside == "another workspace" else principal
    user_id = "alice" if beside == "another workspace" else "bob"
    return lambda message, **changed: send(sender, message, user_id=user_id, **changed)


@BESIDE
def test_a_session_of_the_same_name_is_another_conversation(
    principal: Principal, send_beside: Send
) -> None:
    send_beside(RISKY, slots={}, session_id="s")
    send(principal, "staging", slots={}, session_id="s")
    assert Conversation.objects.filter(session_id="s").count() == 2


@BESIDE
def test_the_same_key_is_another_message(principal: Principal, send_beside: Send) -> None:
    send_beside(HARMLESS, idempotency_key="k")
    assert send(principal, RISKY, idempotency_key="k")["trace"]["mode"] == "confirm"
    assert Decision.objects.count() == 2


@BESIDE
def test_an_event_beside_is_not_compared(principal: Principal, send_beside: Send) -> None:
    send_beside(HARMLESS)
    Event.objects.update(layer="L4")
    assert send(principal, HARMLESS)["trace"]["l4_gate"]["top"] == 0.0


@BESIDE
def test_a_failure_beside_lowers_no_score(
    beside: str, principal: Principal, outsider: Principal, send_beside: Send
) -> None:
    is_elsewhere = beside == "another workspace"
    report = {
        "decision_id": send_beside("Run the unit tests.")["decision_id"],
        "user_id": "alice" if is_elsewhere else "bob",
        "outcome_status": "failed",
        "outcome_note": "",
        "failure_type": "repeat_error",
    }
    report_outcome(principal=outsider if is_elsewhere else principal, call=report)
    trace = send(principal, "Count the rows again.")["trace"]
    assert trace["matched_failure_types"] == []
