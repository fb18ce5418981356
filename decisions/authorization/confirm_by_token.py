"""POST /decision/{id}/confirm (S2 §4): a confirmation by the token that came with the decision, or
by a credential that may confirm at all.

Whatever fails reads the same, and takes about the same time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import (
    Authorization,
    ToolCallRequest,
    authorize,
    denial,
    record_denial,
    tool_call_request,
)
from decisions.authorization.confirmations import TOKEN_PURPOSE, confirm, resolve, token_message
from decisions.errors import (
    ConfirmTokenInvalid,
    Conflict,
    DecisionNotFound,
    Forbidden,
    InvalidInput,
)
from decisions.identity.principals import Principal
from decisions.models import Confirmation, ConfirmationStatus, Decision
from decisions.security.keys import mac_matches

WRONG_TRIES = 5  # the last of them burns the token
CONFIRM = "confirm"  # the scope of credentials that confirm without a token
_INVALID = "The confirm token is invalid, used or expired."


def confirm_decision(*, principal: Principal, call: dict[str, Any]) -> dict[str, Any]:
    """Confirm a decision and return {ok, decision_id, user_id, confirmed, message}. Commits.

    `call` is a valid CONFIRM_INPUT. Without a token only a credential with the scope `confirm`
    does, which is how a program of an operator's confirms deeds: those have no token at all.

    Raises:
        ConfirmTokenInvalid: Anything is not as it has to be: all read the same.
        InvalidInput: No token came, and the credential lacks the scope.
        Forbidden: It lacks continuity:write.
        PolicyDenied: A rule says deny of this call, or confirm.
    """
    principal.require("continuity:write")
    decision_id, user_id = call["decision_id"], call["user_id"]
    about = {"decision_id": decision_id, "user_id": user_id}
    _admit(tool_call_request(principal, "continuity_confirm_decision", about))
    token = call.get("confirm_token")
    if token is not None:
        confirm_with_token(
            principal=principal, decision_id=decision_id, user_id=user_id, confirm_token=token
        )
    elif CONFIRM not in principal.scopes:
        raise InvalidInput("confirm_token: it is required.")
    else:
        _confirm_by_scope(principal, decision_id, user_id)
    return {
        "ok": True,
        "decision_id": decision_id,
        "user_id": user_id,
        "confirmed": True,
        "message": "The decision is confirmed; it may be acted on once.",
    }


def _admit(use: ToolCallRequest) -> None:
    """Let the call pass, or refuse it. Nobody is asked whether an answer may be given: where a rule
    wants that, people give it themselves, in the inbox, by a signed link or by command, which no
    rule closes.
    """
    ruling = authorize(use)
    if ruling.decision == "allow":
        return
    verdict = ruling.verdict
    if ruling.decision == "confirm":
        verdict = replace(verdict, reason="people confirm this themselves, in the inbox")
    ruling = Authorization(verdict, "deny")
    record_denial(use, ruling)
    raise denial(use, ruling)


def _confirm_by_scope(principal: Principal, decision_id: int, user_id: str) -> None:
    decision = Decision.objects.filter(pk=decision_id, workspace_id=principal.workspace_id).first()
    theirs = decision is not None and decision.user_id in (None, user_id)
    if not theirs or not principal.may_act_for(user_id):
        _record_try(principal, decision_id, how="api", failed="unknown")
        raise ConfirmTokenInvalid(_INVALID)
    try:
        confirm(decision_id=decision_id, by=principal.id, how="api")
    except DecisionNotFound:
        _record_try(principal, decision_id, how="api", failed="nothing waits")
        raise ConfirmTokenInvalid(_INVALID) from None
    except (Conflict, Forbidden):  # a try that has its audit row
        raise ConfirmTokenInvalid(_INVALID) from None


def confirm_with_token(
    *, principal: Principal, decision_id: int, user_id: str, confirm_token: str
) -> Confirmation:
    """Confirm by the token that came with the decision. Commits, also what a failed try costs.

    Raises:
        ConfirmTokenInvalid: Unknown or foreign decision, wrong, burned, used or expired token: all
            read the same (S2).
    """
    with transaction.atomic():
        confirmation = _find(principal, decision_id, user_id)
        failure = _try(principal, confirmation, confirm_token)
        if failure:
            about = {"confirmationId": confirmation.id} if confirmation else {}
            _record_try(principal, decision_id, how="token", failed=failure, **about)
    if failure or confirmation is None:
        raise ConfirmTokenInvalid(_INVALID)
    return confirmation


def _find(principal: Principal, decision_id: int, user_id: str) -> Confirmation | None:
    """Return the confirmation, its row locked until the transaction ends, if it is the caller's."""
    if not principal.may_act_for(user_id):
        return None
    # One try at a time: PostgreSQL locks the row, SQLite's transactions exclude each other anyway.
    rows = Confirmation.objects.select_for_update(of=("self",)).select_related("decision")
    return rows.filter(
        decision_id=decision_id,
        decision__workspace_id=principal.workspace_id,
        decision__user_id=user_id,
    ).first()


def _try(principal: Principal, confirmation: Confirmation | None, token: str) -> str:
    """Confirm if the token is right; return why not, or nothing."""
    if confirmation is None or not confirmation.token_digest:
        mac_matches(TOKEN_PURPOSE, token.encode(), "")  # takes the time that a known one takes
        return "unknown" if confirmation is None else "no token"
    if not mac_matches(
        TOKEN_PURPOSE, token_message(confirmation.decision, token), confirmation.token_digest
    ):
        return _count_wrong_try(confirmation)
    if not resolve(confirmation, ConfirmationStatus.CONFIRMED, by=principal.id, how="token"):
        return confirmation.status
    return ""


def _count_wrong_try(confirmation: Confirmation) -> str:
    if confirmation.status != ConfirmationStatus.WAITING:
        return "wrong"
    confirmation.wrong_tries += 1
    if confirmation.wrong_tries >= WRONG_TRIES:
        confirmation.token_digest = None
    confirmation.save(update_fields=["wrong_tries", "token_digest"])
    return "wrong" if confirmation.token_digest else "burned"


def _record_try(principal: Principal, decision_id: int, **told: str) -> None:
    record(
        AuditEvent(
            "confirmation.tried",
            principal.id,
            "decision",
            str(decision_id),
            principal.tenant_id,
            principal.workspace_id,
            told,
        )
    )
