"""Conversations: a session's pending request, its answers and slots; one message as a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
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
from decisions.chat.exact_request import (
    EarlierTexts,
    RequestTexts,
    earlier_texts,
    mask_words,
    pending_request,
)
from decisions.chat.risk.detection import RequestedRisk, find_risk
from decisions.foundation.infra.ids import new_id
from decisions.foundation.security.logs import redact, redact_value
from decisions.foundation.security.masking import MASK
from decisions.memory.owner import Owner
from decisions.models import Confirmation, ConfirmationStatus, Conversation

LAST_MESSAGE_CHARS = 4000  # of the last message, which the next one may refer to
CLAUSE_CHARS = 500  # of the unconfirmed risky clause that "do it" may refer to


@dataclass(slots=True)
class ChatTurn:
    """One message in its conversation. Decisions are made on the texts as they were sent; rows and
    responses have the masked ones.

    Attributes:
        exact: the texts to decide on: the message, or the earlier request whose questions it
            answers with all answers, as they were sent.
        masked: the same texts with secrets masked, and all known slots.
        masked_message: the message with secrets masked.
        slots: slot name -> known value, as it was sent.
        missing: the required slots to ask for first.
        earlier: what the message may refer to, as it was sent.
        finding: the risk found; while slots are missing, in the request alone.
        masked_finding: the same with its clause masked.
        seen_at: the conversation's last change when it was read; None for a new conversation.
    """

    conversation: Conversation
    message: str
    exact: RequestTexts
    masked: RequestTexts
    masked_message: str
    slots: dict[str, str]
    task_type: TaskType
    missing: list[str]
    language: Language
    earlier: EarlierTexts
    finding: RequestedRisk | None
    masked_finding: RequestedRisk | None
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
        row.request = self.masked.message if is_pending else ""
        row.answers = list(self.masked.answers) if is_pending else []
        row.slots = dict(self.masked.slots) if is_pending else {}
        row.asked = list(asked)
        row.sealed_request = self.exact.sealed_for(row) if is_pending else None
        finding, masked = self._risk(gate)
        if masked is not None:
            row.risk = {**asdict(masked), "decision_id": decision_id}
        row.last_message = self.masked_message[-LAST_MESSAGE_CHARS:]
        waiting = finding or self.earlier.waiting
        EarlierTexts(self.message[-LAST_MESSAGE_CHARS:], waiting).seal_into(row)
        row.updated_at = now
        row.save()

    def _risk(self, gate: Gate | None) -> tuple[RequestedRisk | None, RequestedRisk | None]:
        """Return the risk that a later "do it" refers to, and the same masked."""
        if self.finding is None and gate is not None and gate.hit:
            texts = self.exact.message, self.masked.message
            finding, masked = (RequestedRisk(gate.rule, text[:CLAUSE_CHARS]) for text in texts)
            return finding, masked
        return self.finding, self.masked_finding


def read_turn(owner: Owner, call: Mapping[str, Any]) -> ChatTurn:
    """Return a message in its conversation, a new one if needed. Writes nothing."""
    row, message = _conversation(owner, call.get("session_id")), call["message"]
    row.hints_off = row.hints_off or declines_hints(message)
    exact, masked = _request_texts(row, call)
    _clear_confirmed_risk(row)
    earlier = earlier_texts(row)
    previous, waiting = earlier.last_message, earlier.waiting
    finding = find_risk(exact.message, previous=previous, waiting=waiting)
    task_type = task_type_of(exact.message, risky=finding is not None)
    slots = {**slots_in(exact.message, REQUIRED[task_type]), **exact.slots}
    missing = missing_slots(task_type, slots)
    if finding is None and not missing:
        finding = find_added_risk(
            exact.message,
            exact.answers,
            previous=previous,
            waiting=waiting,
            environment=slots.get("environment", ""),
        )
    finding = finding and RequestedRisk(str(finding.rule), finding.clause[:CLAUSE_CHARS])
    shown = {**slots_in(masked.message, REQUIRED[task_type]), **masked.slots}
    masked = replace(masked, slots={slot: shown.get(slot, MASK) for slot in slots})
    return ChatTurn(
        conversation=row,
        message=message,
        exact=exact,
        masked=masked,
        masked_message=masked.answers[-1] if masked.answers else masked.message,
        slots=slots,
        task_type=task_type,
        missing=missing,
        language=language_of(exact.message),
        earlier=earlier,
        finding=finding,
        masked_finding=finding and _masked_finding(finding, masked, row),
        seen_at=row.updated_at if row.pk else None,
    )


def _request_texts(row: Conversation, call: Mapping[str, Any]) -> tuple[RequestTexts, RequestTexts]:
    """Return the request of a call as it was sent, and masked: the pending request of the
    conversation with the message as an answer, or else the message.
    """
    message, hidden = call["message"], redact(call["message"])
    texts = {slot: str(value) for slot, value in call.get("slots", {}).items()}
    given = redact_value(texts)
    pending = None if is_new_request(message) else pending_request(row)
    if pending is None:
        return RequestTexts(message, (), texts), RequestTexts(hidden, (), given)
    masked = RequestTexts(row.request, tuple(row.answers), row.slots)
    return (
        pending.answered(message, {**answers_in(message, row.asked), **texts}),
        masked.answered(hidden, {**answers_in(hidden, row.asked), **given}),
    )


def _masked_finding(
    finding: RequestedRisk, masked: RequestTexts, row: Conversation
) -> RequestedRisk:
    earlier = row.last_message, row.risk.get("clause", "")
    texts = masked.message, *masked.answers, *masked.slots.values(), *earlier
    return RequestedRisk(finding.rule, mask_words(finding.clause, texts))


def _clear_confirmed_risk(row: Conversation) -> None:
    """Clear the conversation's risk if a person has confirmed it."""
    decision_id = row.risk.get("decision_id")
    if decision_id is not None:
        confirmed = Confirmation.objects.filter(
            decision_id=decision_id, status=ConfirmationStatus.CONFIRMED
        )
        if confirmed.exists():
            row.risk = {}


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
