"""A session's memory: the message that waits for slots, what was said to the questions about it."""

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
from decisions.chat.risk.detection import Finding, find_risk
from decisions.continuity.owner import Owner
from decisions.infra.batches import BATCH_SIZE, run_in_batches
from decisions.infra.ids import new_id
from decisions.models import Confirmation, ConfirmationStatus, Conversation
from decisions.security.logs import redact

LAST_MESSAGE_CHARS = 4000  # characters of the last message that the next one may be about
IDLE_LIFETIME = timedelta(days=30)  # of a conversation, from its last message
CLAUSE_CHARS = 500  # characters of what waits for a person that "do it" may be about


@dataclass(slots=True)
class ChatTurn:
    """One message in its conversation.

    Its texts went through `redact`: no later step, and no row, sees a secret that looks like one.

    Attributes:
        request: what is to be decided on: the message, or the one that it answers questions about.
        answers: what was said to these questions, this message included.
        slots: what is known of the request.
        missing: the slots that have to be asked for first.
        finding: what is risky about it; of one that is asked back, about the request alone.
        seen_at: when the conversation, as it was read, had changed last; None of a new one.
    """

    conversation: Conversation
    message: str
    request: str
    answers: tuple[str, ...]
    slots: dict[str, str]
    task_type: TaskType
    missing: list[str]
    language: Language
    finding: Finding | None
    seen_at: datetime | None

    def save(self, *, asked: Sequence[str], gate: Gate | None, decision_id: int | None) -> None:
        """Write the conversation, in the caller's transaction: what was asked for, or that nothing
        waits any more; and what a person has to confirm before a later "do it" may mean it.
        """
        row, now = self.conversation, datetime.now(UTC)
        waits = bool(asked)
        row.request = self.request if waits else ""
        row.answers = list(self.answers) if waits else []
        row.slots = self.slots if waits else {}
        row.asked = list(asked)
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
    """Return a message in its conversation, made when new. Reads alone."""
    row, message = _conversation(owner, call.get("session_id")), redact(call["message"])
    row.hints_off = row.hints_off or declines_hints(message)
    given = {slot: redact(str(value)) for slot, value in call.get("slots", {}).items()}
    if row.request and not is_new_request(message):
        request, answers = row.request, (*row.answers, message)
        slots = {**row.slots, **answers_in(message, row.asked), **given}
    else:
        request, answers, slots = message, (), given
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
        finding=finding,
        seen_at=row.updated_at if row.pk else None,
    )


def _waiting(row: Conversation) -> Finding | None:
    """Return what was found in the conversation and no person has confirmed; what one has is
    forgotten.
    """
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
    """Delete conversations that nobody went on with for 30 days; return how many. Commits. What was
    decided in them stays.
    """
    old = Conversation.objects.filter(updated_at__lte=datetime.now(UTC) - IDLE_LIFETIME)

    def forget_some() -> int:
        return old.filter(pk__in=list(old.values_list("pk", flat=True)[:BATCH_SIZE])).delete()[0]

    return run_in_batches(forget_some, full=BATCH_SIZE)
