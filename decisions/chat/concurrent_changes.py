"""Changes made while a message was drafted, read under the lock of its user in one statement."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection

from decisions.chat.answers import ChatCall

# Raw SQL: it runs under the user's lock, and the ORM takes longer to compile it than everything
# else under the lock takes.
_STATE = """
    SELECT (SELECT created_at FROM decisions_chatanswer
            WHERE workspace_id = %s AND user_id = %s AND idempotency_key = %s),
           (SELECT updated_at FROM decisions_conversation
            WHERE workspace_id = %s AND user_id = %s AND session_id = %s),
           (SELECT MAX(id) FROM decisions_event WHERE workspace_id = %s AND user_id = %s)
"""


@dataclass(frozen=True, slots=True)
class ConcurrentChanges:
    """The current state.

    Attributes:
        answered_at: when the response of the call's key was stored; None if there is none.
        conversation_at: when the conversation changed last; None if there is none.
        last_event_id: the user's newest event; None if there is none.
    """

    answered_at: datetime | None
    conversation_at: datetime | None
    last_event_id: int | None


def read_concurrent_changes(call: ChatCall, session_id: str) -> ConcurrentChanges:
    """Return the current state. The caller holds the lock of the user."""
    owner = call.owner.workspace_id, call.owner.user_id
    with connection.cursor() as cursor:
        cursor.execute(_STATE, [*owner, call.key, *owner, session_id, *owner])
        answered_at, conversation_at, last_event_id = cursor.fetchone()
    return ConcurrentChanges(_aware(answered_at), _aware(conversation_at), last_event_id)


def _aware(stored: datetime | None) -> datetime | None:
    """Return a time with its time zone, as the ORM does: SQLite returns naive times in UTC."""
    return stored if stored is None or stored.tzinfo else stored.replace(tzinfo=UTC)
