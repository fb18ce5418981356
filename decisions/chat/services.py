"""POST /chat: evaluate one message, decide on it and return the response.

draft    intake ──> questions (clarify_first): only the conversation is saved
            └─────> impact, retrieval, score, gate ──> act | clarify | confirm
write    all rows, their audit row and the response, in one transaction under the user's lock,
         unless a concurrent message made the draft stale
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import admit_call, tool_call_request, use_approval
from decisions.chat.analysis.intake import MAX_QUESTIONS
from decisions.chat.answers import (
    ChatCall,
    chat_call,
    find_answer,
    is_current,
    store_answer,
    store_reply_text,
    wait_for_reply_text,
)
from decisions.chat.concurrent_changes import read_concurrent_changes
from decisions.chat.evaluation import Draft, draft_reply, refresh_draft
from decisions.chat.protocol import ChatReply, ask_questions, decide
from decisions.chat.responder import compose_reply, is_builtin_responder
from decisions.foundation.errors import IdempotencyConflict, InvalidInput
from decisions.foundation.infra.threads import in_thread, run_to_completion
from decisions.identity.principals import Principal
from decisions.memory.owner import Owner, owner_of
from decisions.models import ChatAnswer, Confirmation
from decisions.models.chat import MESSAGE_BYTES


async def chat(*, principal: Principal, call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the response of `POST /chat`. Commits.

    The same key with the same body returns the same response without the confirm token, also while
    the first call is still running. Waiting for a custom responder occupies neither a thread nor a
    connection of the database pool.

    Args:
        call: arguments that are valid by CHAT_INPUT.

    Raises:
        Forbidden, ForbiddenUser: As `owner_of`.
        InvalidInput: The key or the message is blank, or the message has more than 64 KiB.
        IdempotencyConflict: The key was used for another body within 24 hours.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    return await run_to_completion(_chat(principal, call))


async def _chat(principal: Principal, call: Mapping[str, Any]) -> dict[str, Any]:
    row, reply = await in_thread(decide_on_call, principal=principal, call=call)
    if reply is None:
        return await wait_for_reply_text(row)
    if not row.worded:
        text = await in_thread(store_reply_text, row, await compose_reply(reply.decided))
        reply = replace(reply, response=text)
    return reply.as_dict()


def decide_on_call(
    *, principal: Principal, call: Mapping[str, Any]
) -> tuple[ChatAnswer, ChatReply | None]:
    """Decide on a call and return its stored response and its reply; for a repeated call the stored
    response and None. Raises as `chat`. Commits.
    """
    require_key(call)
    owner = owner_of(principal, call["user_id"], scope="continuity:write")
    check_message(call["message"])
    identity = chat_call(owner, call)
    approval = admit_call(
        tool_call_request(principal, "continuity_chat", call, key=call["idempotency_key"])
    )
    try:
        # Most keys are new, so writing is tried before looking up the key. It fails if a concurrent
        # message used the key or changed the conversation; the second case is retried.
        while True:
            written = _write(owner, principal, draft_reply(owner, call), identity, approval)
            if written is not None:
                return written
            stored = find_answer(identity)
            if stored is not None:
                return stored, None
    except IdempotencyConflict as refusal:
        scope = owner.tenant_id, owner.workspace_id
        details = {"errorCode": refusal.code}
        record(AuditEvent("chat.refused", principal.id, "user", owner.user_id, *scope, details))
        raise


def _write(
    owner: Owner,
    principal: Principal,
    draft: Draft,
    identity: ChatCall,
    approval: Confirmation | None,
) -> tuple[ChatAnswer, ChatReply] | None:
    """Write a draft and its response. Commits.

    Returns None, having written nothing, if the key was used or the conversation changed since the
    draft was made.
    """
    turn = draft.turn
    with transaction.atomic():
        owner.lock()  # one message of a user at a time
        now = read_concurrent_changes(identity, turn.conversation.session_id)
        is_used = now.answered_at is not None and is_current(now.answered_at)
        if is_used or now.conversation_at != turn.seen_at:
            return None
        use_approval(approval)
        if now.last_event_id != draft.last_event_id:
            draft = refresh_draft(owner, draft)
        if draft.evaluation is None:
            reply = ask_questions(turn)
        else:
            reply = decide(owner, principal, turn, draft.evaluation)
        gate = draft.evaluation.gate if draft.evaluation else None
        turn.save(asked=turn.missing[:MAX_QUESTIONS], gate=gate, decision_id=reply.decision_id)
        row = store_answer(
            identity,
            reply.without_token(),
            worded=is_builtin_responder(),
            replaces=now.answered_at is not None,
        )
    return row, reply


def require_key(call: Mapping[str, Any]) -> None:
    """Raise if a call has no idempotency_key; S2 requires this error before all others.

    Raises:
        InvalidInput: The key is missing or blank.
    """
    key = call.get("idempotency_key", "")
    if isinstance(key, str) and not key.strip():
        raise InvalidInput("idempotency_key is required")


def check_message(message: str) -> None:
    """Raise if a message is blank or has more than 64 KiB.

    Raises:
        InvalidInput: Either of these.
    """
    if not message.strip():
        raise InvalidInput("message: it is blank.")
    size = len(message.encode())
    if size > MESSAGE_BYTES:
        raise InvalidInput(f"message: it has {size} bytes; at most {MESSAGE_BYTES} are accepted.")
