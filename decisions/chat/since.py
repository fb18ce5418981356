"""What came while a message was drafted, asked under the lock of its user: one statement."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import OuterRef, Subquery

from decisions.chat.answers import Call
from decisions.models import ChatAnswer, Conversation, Event, User


@dataclass(frozen=True, slots=True)
class Since:
    """How things stand.

    Attributes:
        answered_at: when the call's key was taken; None where it is free.
        said_at: when the conversation changed last; None where there is none.
        last_event_id: of the user's past; None where there is none.
    """

    answered_at: datetime | None
    said_at: datetime | None
    last_event_id: int | None


def look_since(call: Call, session_id: str) -> Since:
    """Return how things stand now. The caller has locked the user."""
    mine = {"workspace_id": OuterRef("workspace_id"), "user_id": OuterRef("user_id")}
    answers = ChatAnswer.objects.filter(**mine, idempotency_key=call.key)
    conversations = Conversation.objects.filter(**mine, session_id=session_id)
    events = Event.objects.filter(**mine).order_by("-pk")
    user = User.objects.filter(workspace_id=call.owner.workspace_id, user_id=call.owner.user_id)
    found = user.values_list(
        Subquery(answers.values("created_at")),
        Subquery(conversations.values("updated_at")),
        Subquery(events.values("pk")[:1]),
    )
    return Since(*found.get())
