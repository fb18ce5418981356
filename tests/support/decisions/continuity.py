"""Requests that tests of the Continuity API send, and functions that create their rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from decisions.authorization.confirmations import open_confirmation
from decisions.authorization.sealed_arguments import seal_arguments
from decisions.identity.principals import Principal
from decisions.memory.learning import Forecast
from decisions.memory.outcomes import open_outcome
from decisions.memory.owner import Owner
from decisions.models import Decision, DecisionKind, DecisionMode, Outcome

SHELL: dict[str, Any] = {
    "social_interface": {"tone": "plain"},
    "narratives": {"role": "maintainer"},
    "confidence": "high",
    "validity": "long",
    "source": "user",
}
SUCCESS_PATH: dict[str, Any] = {
    "name": "read the notes",
    "intent": "read the notes of a release",
    "required_slots": ["url"],
    "slot_definitions": {"url": "where the notes are"},
    "procedure": [{"tool": "read_page", "args": {"url": "${url}"}}],
    "success_criteria": "the text names the version",
    "confidence": "medium",
    "validity": "long",
    "tags": ["release"],
}
SendChat = Callable[..., dict[str, Any]]
KNOWN_SLOTS = {
    "environment": "staging",
    "target": "the table",
    "success_criteria": "no row is left",
}
RISKY = "Delete all rows of the orders table."
HARMLESS = "Count the rows of the orders table."
FORECAST = Forecast(impact={"time": -0.4}, confidence=0.5, cost=0.2, layer="L1")


def owner_of(principal: Principal, user_id: str = "alice") -> Owner:
    """Return a user of the principal's workspace."""
    return Owner(principal.tenant_id, principal.workspace_id, user_id)


def create_decision(
    principal: Principal,
    *,
    user_id: str | None = "alice",
    mode: str = DecisionMode.ACT,
    pk: int | None = None,
    **columns: Any,
) -> Decision:
    """Create a decision on a chat message."""
    decision = Decision(
        pk=pk,
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        user_id=user_id,
        principal_id=principal.id,
        kind=DecisionKind.CHAT,
        mode=mode,
        subject_digest="0" * 64,
        created_at=datetime.now(UTC),
        **columns,
    )
    decision.sealed_arguments = seal_arguments(decision, {"message": RISKY})
    decision.save(force_insert=True)
    return decision


def create_decision_with_outcome(
    principal: Principal,
    *,
    user_id: str = "alice",
    mode: str = DecisionMode.ACT,
    forecast: Forecast = FORECAST,
) -> Outcome:
    """Create a decision on a chat message as chat does, with its pending outcome."""
    decision = create_decision(principal, user_id=user_id, mode=mode)
    if mode == DecisionMode.CONFIRM:
        open_confirmation(decision, delivery="inline")
    return open_outcome(decision, forecast)
