"""Answers kept for 24 hours, so that a repeated call gets what the first one got: never the confirm
token, which is told once.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from django.db.models import QuerySet

from decisions.chat.responder import TIMEOUT_S
from decisions.continuity.owner import Owner
from decisions.errors import IdempotencyConflict
from decisions.infra.batches import BATCH_SIZE, run_in_batches
from decisions.infra.threads import in_thread
from decisions.models import ChatAnswer
from decisions.security.keys import macs

KEY_LIFETIME = timedelta(hours=24)
_LOOK_EVERY_S = 0.1
_GRACE_S = 3.0


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A call as its key tells it from others.

    Attributes:
        digests: of its whole body, under each configured key, the newest first.
    """

    owner: Owner
    key: str
    digests: tuple[str, ...]

    @property
    def digest(self) -> str:
        """The digest that is kept."""
        return self.digests[0]


def chat_call(owner: Owner, said: Mapping[str, Any]) -> ChatCall:
    """Return a call's key with the keyed digests of its whole body."""
    raw = orjson.dumps(dict(said), option=orjson.OPT_SORT_KEYS)
    return ChatCall(owner, said["idempotency_key"], macs("chat", hashlib.sha256(raw).digest()))


def find_answer(call: ChatCall) -> ChatAnswer | None:
    """Return what the key was answered, worded or not yet; None for a key that is free.

    Raises:
        IdempotencyConflict: The key came with another body.
    """
    row = _rows(call).filter(created_at__gt=datetime.now(UTC) - KEY_LIFETIME).first()
    if row is not None and row.call_digest not in call.digests:
        raise IdempotencyConflict("This idempotency_key came before with another body.")
    return row


def _rows(call: ChatCall) -> QuerySet[ChatAnswer]:
    return ChatAnswer.objects.filter(
        workspace_id=call.owner.workspace_id, user_id=call.owner.user_id, idempotency_key=call.key
    )


def is_current(created_at: datetime) -> bool:
    """Tell whether an answer of that time still stands for its key."""
    return created_at > datetime.now(UTC) - KEY_LIFETIME


def store_answer(
    call: ChatCall, answer: Mapping[str, Any], *, worded: bool, replaces: bool
) -> ChatAnswer:
    """Take the key for an answer, in the caller's transaction, under the lock of the user.

    Args:
        replaces: an answer whose time is over stands under the key; it goes.
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
    """Keep the words of an answer, unless somebody did not wait for them; return those that stand.
    Commits.
    """
    answer = {**row.answer, "response": response}
    ours = ChatAnswer.objects.filter(pk=row.pk, worded=False)
    if not ours.update(answer=answer, worded=True):
        row.refresh_from_db()
    else:
        row.answer = answer
    return str(row.answer["response"])


async def wait_for_reply_text(row: ChatAnswer) -> dict[str, Any]:
    """Return an answer when its words are final: repeated calls get the same ones. Where the
    process that asked for them is gone, those that stand are final.
    """
    until = time.monotonic() + TIMEOUT_S + _GRACE_S
    while not row.worded and time.monotonic() < until:
        await asyncio.sleep(_LOOK_EVERY_S)
        await in_thread(row.refresh_from_db)
    if not row.worded:
        await in_thread(store_reply_text, row, str(row.answer["response"]))
    answer: dict[str, Any] = row.answer
    return answer


def delete_expired_answers(now: datetime | None = None) -> int:
    """Delete answers whose 24 hours are over; return how many. Commits."""
    old = ChatAnswer.objects.filter(created_at__lte=(now or datetime.now(UTC)) - KEY_LIFETIME)

    def forget_some() -> int:
        return old.filter(pk__in=list(old.values_list("pk", flat=True)[:BATCH_SIZE])).delete()[0]

    return run_in_batches(forget_some, full=BATCH_SIZE)
