"""What came while a message was drafted, asked under the lock of its user: one statement."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection

from decisions.chat.answers import ChatCall

# Each message waits here for the user's row to be its own: the ORM takes longer to word this than
# all the rest of what is done under the lock.
_SINCE = """
    SELECT (SELECT created_at FROM decisions_chatanswer
            WHERE workspace_id = %s AND user_id = %s AND idempotency_key = %s),
           (SELECT updated_at FROM decisions_conversation
            WHERE workspace_id = %s AND user_id = %s AND session_id = %s),
           (SELECT MAX(id) FROM decisions_event WHERE workspace_id = %s AND user_id = %s)
"""


@dataclass(frozen=True, slots=True)
class ConcurrentChanges:
    """How things stand.

    Attributes:
        answered_at: when the call's key was taken; None where it is free.
        said_at: when the conversation changed last; None where there is none.
        last_event_id: of the user's past; None where there is none.
    """

    answered_at: datetime | None
    said_at: datetime | None
    last_event_id: int | None


def read_concurrent_changes(call: ChatCall, session_id: str) -> ConcurrentChanges:
    """Return how things stand now. The caller has locked the user."""
    mine = call.owner.workspace_id, call.owner.user_id
    with connection.cursor() as cursor:
        cursor.execute(_SINCE, [*mine, call.key, *mine, session_id, *mine])
        answered_at, said_at, last_event_id = cursor.fetchone()
    return ConcurrentChanges(_moment(answered_at), _moment(said_at), last_event_id)


def _moment(stored: datetime | None) -> datetime | None:
    """Return a time as the ORM does: SQLite's are in UTC and do not say so."""
    return stored if stored is None or stored.tzinfo else stored.replace(tzinfo=UTC)
