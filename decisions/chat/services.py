"""POST /chat: one message taken in, decided on and answered, in one transaction with its audit row.

intake ──> questions (clarify_first): nothing is kept but the conversation
   └─────> impact, retrieval, score, gate, reality_first ──> act | clarify | confirm
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.db import IntegrityError, transaction

from decisions.audit import Deed, record
from decisions.chat.answers import Call, call_of, find_answer, keep_answer, put_wording
from decisions.chat.contract import MESSAGE_BYTES
from decisions.chat.conversation import take_turn
from decisions.chat.intake import MAX_QUESTIONS
from decisions.chat.protocol import Answer, ask_back, decide
from decisions.chat.responder import is_built_in, reply_of
from decisions.errors import IdempotencyConflict, InvalidInput
from decisions.models import ChatAnswer
from decisions.owner import Owner, owner_of
from decisions.principals import Principal


def chat(*, principal: Principal, call: Mapping[str, Any]) -> dict[str, Any]:
    """Answer `POST /chat`. `call` is valid by CHAT_INPUT.

    Commits before returning. The same key with the same body again returns the same answer without
    the confirm token, also while the first call is under way.

    Raises:
        Forbidden, ForbiddenUser: As `owner_of`.
        InvalidInput: A blank key or message, or a message of more than 64 KiB.
        IdempotencyConflict: The key came with another body within 24 hours.
    """
    require_key(call)
    owner = owner_of(principal, call["user_id"], scope="continuity:write")
    check_message(call["message"])
    asked = call_of(owner, call)
    try:
        return find_answer(asked) or _answer(owner, principal, call, asked)
    except IdempotencyConflict as refusal:
        place = owner.tenant_id, owner.workspace_id
        told = {"errorCode": refusal.code}
        record(Deed("chat.refused", principal.id, "user", owner.user_id, *place, told))
        raise


def _answer(
    owner: Owner, principal: Principal, call: Mapping[str, Any], asked: Call
) -> dict[str, Any]:
    try:
        with transaction.atomic():
            row = keep_answer(asked, worded=is_built_in())
            made = _converse(owner, principal, call)
            row.answer = made.kept()
            row.save(update_fields=["answer"])
    except IntegrityError:  # the same key came at the same moment, and was first
        stored = find_answer(asked)
        if stored is None:
            raise
        return stored
    return _worded(row, made)


def _converse(owner: Owner, principal: Principal, call: Mapping[str, Any]) -> Answer:
    owner.lock()  # one message of a user at a time
    turn = take_turn(owner, call)
    made = ask_back(turn) if turn.missing else decide(owner, principal, turn)
    turn.save(asked=turn.missing[:MAX_QUESTIONS] if made.decision_id is None else ())
    return made


def _worded(row: ChatAnswer, made: Answer) -> dict[str, Any]:
    """Return the answer in the words of the installation's own responder, if it has one."""
    if not row.worded:
        words = put_wording(row, reply_of(made.decided))
        made = replace(made, response=words)
    return made.told()


def require_key(call: Mapping[str, Any]) -> None:
    """Refuse a call without an idempotency_key, before anything else is said of it.

    Raises:
        InvalidInput: It is missing or blank.
    """
    key = call.get("idempotency_key", "")
    if isinstance(key, str) and not key.strip():
        raise InvalidInput("idempotency_key is required")


def check_message(message: str) -> None:
    """Refuse a message that says nothing, or more than 64 KiB.

    Raises:
        InvalidInput: It does.
    """
    if not message.strip():
        raise InvalidInput("message: it is blank.")
    size = len(message.encode())
    if size > MESSAGE_BYTES:
        raise InvalidInput(f"message: it has {size} bytes; at most {MESSAGE_BYTES} are taken.")
