"""POST /chat: one message taken in, decided on and answered.

draft    intake ──> questions (clarify_first): nothing is kept but the conversation
            └─────> impact, retrieval, score, gate ──> act | clarify | confirm
write    all rows of it, their audit row and the answer, in one transaction under the user's lock,
         if nothing came since that changes the draft
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
    find_answer,
    is_current,
    chat_call,
    store_answer,
    store_reply_text,
    wait_for_reply_text,
)
from decisions.chat.concurrent_changes import read_concurrent_changes
from decisions.chat.contract import MESSAGE_BYTES
from decisions.chat.evaluation import Draft, draft_reply, refresh_draft
from decisions.chat.protocol import ChatReply, ask_questions, decide
from decisions.chat.responder import compose_reply, is_builtin_responder
from decisions.continuity.owner import Owner, owner_of
from decisions.errors import IdempotencyConflict, InvalidInput
from decisions.identity.principals import Principal
from decisions.infra.threads import in_thread, run_to_completion
from decisions.models import ChatAnswer, Confirmation


async def chat(*, principal: Principal, call: Mapping[str, Any]) -> dict[str, Any]:
    """Answer `POST /chat`. `call` is valid by CHAT_INPUT.

    Commits before returning. The same key with the same body again returns the same answer without
    the confirm token, also while the first call is under way. While the installation's own
    responder is waited for, no thread and no connection is held.

    Raises:
        Forbidden, ForbiddenUser: As `owner_of`.
        InvalidInput: A blank key or message, or a message of more than 64 KiB.
        IdempotencyConflict: The key came with another body within 24 hours.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    return await run_to_completion(_chat(principal, call))


async def _chat(principal: Principal, call: Mapping[str, Any]) -> dict[str, Any]:
    row, made = await in_thread(decide_on_call, principal=principal, call=call)
    if made is None:
        return await wait_for_reply_text(row)
    if not row.worded:
        words = await in_thread(store_reply_text, row, await compose_reply(made.decided))
        made = replace(made, response=words)
    return made.told()


def decide_on_call(
    *, principal: Principal, call: Mapping[str, Any]
) -> tuple[ChatAnswer, ChatReply | None]:
    """Decide on a call, and return the answer as it is kept and as it is told the first time; of a
    call that came before what is kept alone. Raises as `chat`. Commits.
    """
    require_key(call)
    owner = owner_of(principal, call["user_id"], scope="continuity:write")
    check_message(call["message"])
    asked = chat_call(owner, call)
    approval = admit_call(
        tool_call_request(principal, "continuity_chat", call, key=call["idempotency_key"])
    )
    try:
        # Most keys are new, so that is what is tried first; again only where another message of the
        # session, or of the key, got in before.
        while True:
            written = _write(owner, principal, draft_reply(owner, call), asked, approval)
            if written is not None:
                return written
            stored = find_answer(asked)
            if stored is not None:
                return stored, None
    except IdempotencyConflict as refusal:
        place = owner.tenant_id, owner.workspace_id
        told = {"errorCode": refusal.code}
        record(AuditEvent("chat.refused", principal.id, "user", owner.user_id, *place, told))
        raise


def _write(
    owner: Owner,
    principal: Principal,
    draft: Draft,
    asked: ChatCall,
    approval: Confirmation | None,
) -> tuple[ChatAnswer, ChatReply] | None:
    """Write a draft and its answer; nothing where the key was taken, or the conversation went on,
    since it was made. Commits.
    """
    turn = draft.turn
    with transaction.atomic():
        owner.lock()  # one message of a user at a time
        since = read_concurrent_changes(asked, turn.conversation.session_id)
        taken = since.answered_at is not None and is_current(since.answered_at)
        if taken or since.said_at != turn.seen_at:
            return None
        use_approval(approval)
        if since.last_event_id != draft.last_event_id:
            draft = refresh_draft(owner, draft)
        if draft.evaluation is None:
            made = ask_questions(turn)
        else:
            made = decide(owner, principal, turn, draft.evaluation)
        gate = draft.evaluation.gate if draft.evaluation else None
        turn.save(asked=turn.missing[:MAX_QUESTIONS], gate=gate, decision_id=made.decision_id)
        row = store_answer(
            asked, made.kept(), worded=is_builtin_responder(), replaces=since.answered_at is not None
        )
    return row, made


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
