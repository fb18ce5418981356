"""Idempotency of chat: responses stored for 24 hours and returned to repeated calls, without the
confirm token, which only the first response has.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from decisions.chat.responder import TIMEOUT_S
from decisions.foundation.errors import IdempotencyConflict
from decisions.foundation.infra.batches import delete_in_batches
from decisions.foundation.infra.threads import in_thread
from decisions.foundation.security.keys import macs
from decisions.foundation.validation.json_output import json_digest
from decisions.memory.owner import Owner
from decisions.models import ChatAnswer

KEY_LIFETIME = timedelta(hours=24)
_POLL_EVERY_S = 0.1
_GRACE_S = 3.0


@dataclass(frozen=True, slots=True)
class ChatCall:
    """The identity of a chat call.

    Attributes:
        digests: of its whole body, under each configured key, newest first.
    """

    owner: Owner
    key: str
    digests: tuple[str, ...]

    @property
    def digest(self) -> str:
        """The digest that is stored."""
        return self.digests[0]


def chat_call(owner: Owner, body: Mapping[str, Any]) -> ChatCall:
    """Return the identity of a call: its key and the keyed digests of its body."""
    return ChatCall(owner, body["idempotency_key"], macs("chat", json_digest(dict(body))))


def find_answer(call: ChatCall) -> ChatAnswer | None:
    """Return the stored response of the call's key, or None. Its reply text may not be final yet.

    Raises:
        IdempotencyConflict: The key was used for another body.
    """
    row = _rows(call).filter(created_at__gt=datetime.now(UTC) - KEY_LIFETIME).first()
    if row is not None and row.call_digest not in call.digests:
        raise IdempotencyConflict("This idempotency_key was used for another body.")
    return row


def _rows(call: ChatCall) -> QuerySet[ChatAnswer]:
    return ChatAnswer.objects.filter(
        workspace_id=call.owner.workspace_id, user_id=call.owner.user_id, idempotency_key=call.key
    )


def is_current(created_at: datetime) -> bool:
    """Return whether a response stored at that time is still returned for its key."""
    return created_at > datetime.now(UTC) - KEY_LIFETIME


def store_answer(
    call: ChatCall, answer: Mapping[str, Any], *, worded: bool, replaces: bool
) -> ChatAnswer:
    """Store the response of a call, in the caller's transaction, under the lock of the user.

    Args:
        worded: the reply text is final.
        replaces: the key has an expired response, which is deleted.
    """
    if replaces:
        _rows(call).delete()
    return ChatAnswer.objects.create(
        workspace_id=call.owner.workspace_id,
        user_id=call.owner.user_id,
        idempotency_key=call.key,
        call_digest=call.digest,
        answer=answer,
        worded=worded,
        created_at=datetime.now(UTC),
    )


def store_reply_text(row: ChatAnswer, response: str) -> str:
    """Store a response's reply text unless it has a final one; return the final one. Commits."""
    answer = {**row.answer, "response": response}
    unworded = ChatAnswer.objects.filter(pk=row.pk, worded=False)
    if not unworded.update(answer=answer, worded=True):
        row.refresh_from_db()
    else:
        row.answer = answer
    return str(row.answer["response"])


async def wait_for_reply_text(row: ChatAnswer) -> dict[str, Any]:
    """Wait for the final reply text and return the response.

    If the process that requests the text from the responder has died, the stored text becomes
    final after a timeout.
    """
    deadline = time.monotonic() + TIMEOUT_S + _GRACE_S
    while not row.worded and time.monotonic() < deadline:
        await asyncio.sleep(_POLL_EVERY_S)
        await in_thread(row.refresh_from_db)
    if not row.worded:
        await in_thread(store_reply_text, row, str(row.answer["response"]))
    answer: dict[str, Any] = row.answer
    return answer


def delete_expired_answers() -> int:
    """Delete responses older than 24 hours; return how many. Commits."""
    old = ChatAnswer.objects.filter(created_at__lte=datetime.now(UTC) - KEY_LIFETIME)
    return delete_in_batches(old)
