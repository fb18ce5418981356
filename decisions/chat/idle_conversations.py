"""Retention of conversations. The scheduler starts without the analysis of messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from decisions.foundation.infra.batches import delete_in_batches
from decisions.models import Conversation

IDLE_LIFETIME = timedelta(days=30)  # of a conversation, after its last message


def delete_idle_conversations() -> int:
    """Delete conversations without a message for 30 days; return how many. Commits. Their decisions
    are kept.
    """
    old = Conversation.objects.filter(updated_at__lte=datetime.now(UTC) - IDLE_LIFETIME)
    return delete_in_batches(old)
