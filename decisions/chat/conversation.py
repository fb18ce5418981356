"""Conversations: a session's pending request, its answers and slots; one message as a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from decisions.chat.analysis.gate import Gate, find_added_risk
from decisions.chat.analysis.intake import (
    REQUIRED,
    TaskType,
    answers_in,
    is_new_request,
    missing_slots,
    slots_in,
    task_type_of,
)
from decisions.chat.analysis.language import Language, language_of
from decisions.chat.analysis.reality_first import declines_hints
from decisions.chat.exact_request import ExactRequest, answered_request, exact_request
from decisions.chat.risk.detection import Finding, find_risk
from decisions.continuity.owner import Owner
from decisions.infra.batches import delete_in_batches
from decisions.infra.ids import new_id
from decisions.models import Confirmation, ConfirmationStatus, Conversation
from decisions.security.logs import redact, redact_value

LAST_MESSAGE_CHARS = 4000  # of the last message, which the next one may refer to
IDLE_LIFETIME = timedelta(days=30)  # of a conversation, after its last message
CLAUSE_CHARS = 500  # of the unconfirmed risky clause that "do it" may refer to


@dataclass(slots=True)
class ChatTurn:
    """One message in its conversation. Its texts are redacted, as are all later steps and rows,
    except `exact`.

    Attributes:
        request: the text to decide on: the message, or the earlier request whose questions it
            answers.
        answers: the answers to these questions, including this message.
        slots: slot name -> known value.
        missing: the required slots to ask for first.
        exact: the request as the caller sent it, for the person who confirms; None if unknown.
        finding: the risk found; while slots are missing, in the request alone.
        seen_at: the conversation's last change when it was read; None for a new conversation.
    """

    conversation: Conversation
    message: str
    request: str
    answers: tuple[str, ...]
    slots: dict[str, str]
    task_type: TaskType
    missing: list[str]
    language: Language
    exact: ExactRequest | None
    finding: Finding | None
    seen_at: datetime | None

    def save(self, *, asked: Sequence[str], gate: Gate | None, decision_id: int | None) -> None:
        """Save the conversation, in the caller's transaction.

        Args:
            asked: the slots asked for; empty if the request is decided on.
            gate: the L4 gate's result; a hit is kept as the risk that a later "do it" refers to.
            decision_id: the decision on the request, if any.
        """
        row, now = self.conversation, datetime.now(UTC)
        is_pending = bool(asked)
        row.request = self.request if is_pending else ""
        row.answers = list(self.answers) if is_pending else []
        row.slots = self.slots if is_pending else {}
        row.asked = list(asked)
        row.sealed_request = self.exact.sealed() if is_pending and self.exact else None
        risk = self._risk(gate)
        if risk is not None:
            row.risk = {**asdict(risk), "decision_id": decision_id}
        row.last_message = self.message[-LAST_MESSAGE_CHARS:]
        row.updated_at = now
        row.save()

    def _risk(self, gate: Gate | None) -> Finding | None:
        if self.finding is None and gate is not None and gate.hit:
            return Finding(gate.rule, self.request[:CLAUSE_CHARS])
        return self.finding and Finding(str(self.finding.rule), self.finding.clause[:CLAUSE_CHARS])


def read_turn(owner: Owner, call: Mapping[str, Any]) -> ChatTurn:
    """Return a message in its conversation, a new one if needed. Writes nothing."""
    row, message = _conversation(owner, call.get("session_id")), redact(call["message"])
    row.hints_off = row.hints_off or declines_hints(message)
    texts = {slot: str(value) for slot, value in call.get("slots", {}).items()}
    given = redact_value(texts)
    if row.request and not is_new_request(message):
        request, answers = row.request, (*row.answers, message)
        slots = {**row.slots, **answers_in(message, row.asked), **given}
        exact = answered_request(row, call)
    else:
        request, answers, slots = message, (), given
        exact = exact_request(call)
    waiting = _waiting(row)
    finding = find_risk(request, previous=row.last_message, waiting=waiting)
    task_type = task_type_of(request, risky=finding is not None)
    slots = {**slots_in(request, REQUIRED[task_type]), **slots}
    missing = missing_slots(task_type, slots)
    if finding is None and not missing:
        finding = find_added_risk(
            request,
            answers,
            previous=row.last_message,
            waiting=waiting,
            environment=slots.get("environment", ""),
        )
    return ChatTurn(
        conversation=row,
        message=message,
        request=request,
        answers=answers,
        slots=slots,
        task_type=task_type,
        missing=missing,
        language=language_of(request),
        exact=exact,
        finding=finding,
        seen_at=row.updated_at if row.pk else None,
    )


def _waiting(row: Conversation) -> Finding | None:
    """Return the conversation's risk that no person has confirmed; a confirmed one is cleared."""
    if not row.risk:
        return None
    confirmed = Confirmation.objects.filter(
        decision_id=row.risk["decision_id"], status=ConfirmationStatus.CONFIRMED
    )
    if row.risk["decision_id"] is not None and confirmed.exists():
        row.risk = {}
        return None
    return Finding(row.risk["rule"], row.risk["clause"])


def _conversation(owner: Owner, session_id: str | None) -> Conversation:
    now = datetime.now(UTC)
    if session_id is not None:
        found = Conversation.objects.filter(
            workspace_id=owner.workspace_id, user_id=owner.user_id, session_id=session_id
        ).first()
        if found is not None:
            return found
    return Conversation(
        **owner.columns, session_id=session_id or new_id("chat_"), created_at=now, updated_at=now
    )


def delete_idle_conversations() -> int:
    """Delete conversations without a message for 30 days; return how many. Commits. Their decisions
    are kept.
    """
    old = Conversation.objects.filter(updated_at__lte=datetime.now(UTC) - IDLE_LIFETIME)
    return delete_in_batches(old)
