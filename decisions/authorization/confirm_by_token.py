"""POST /decision/{id}/confirm (S2 §4): confirm with the decision's token, or with a credential that
has the scope `confirm`.

Every failure gives the same error and takes about the same time.
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
    deny,
    tool_call_request,
)
from decisions.authorization.confirmations import DIGEST_PURPOSE, confirm, resolve, token_message
from decisions.authorization.sealed_arguments import CannotBeShown, is_shown_digest
from decisions.foundation.errors import (
    ConfirmTokenInvalid,
    Conflict,
    DecisionNotFound,
    Forbidden,
    InvalidInput,
    NotAsShown,
)
from decisions.foundation.security.keys import mac_matches
from decisions.identity.authority import CONFIRM, WRITES, is_confirmer, may_confirm
from decisions.identity.principals import Principal
from decisions.models import Confirmation, ConfirmationStatus, Decision

WRONG_TRIES = 5  # the last of them revokes the token
OTHER_DIGEST = "digest"  # why a try failed whose token is right
_INVALID = "The confirm token is invalid, used or expired."


def confirm_decision(*, principal: Principal, call: dict[str, Any]) -> dict[str, Any]:
    """Confirm a decision and return {ok, decision_id, user_id, confirmed, message}. Commits.

    Without a token the credential needs the scope `confirm`: operators' programs use it to confirm
    tool calls, which have no token.

    Args:
        call: arguments that are valid by CONFIRM_INPUT; `shown_digest` is compared where it is
            sent.

    Raises:
        ConfirmTokenInvalid: The confirmation failed, for whatever reason but the next.
        NotAsShown: It would have succeeded, but `shown_digest` is not that of the decision.
        InvalidInput: There is no token, and the credential lacks the scope.
        Forbidden: The credential lacks continuity:write, or has `confirm` beside scopes that write.
        PolicyDenied: The policy decision on this call is deny or confirm.
    """
    principal.require("continuity:write")
    decision_id, user_id = call["decision_id"], call["user_id"]
    about = {"decision_id": decision_id, "user_id": user_id}
    _admit(tool_call_request(principal, "continuity_confirm_decision", about))
    token, shown = call.get("confirm_token"), call.get("shown_digest")
    if token is not None:
        _confirm_with_token(principal, decision_id, user_id, token, shown)
    elif CONFIRM not in principal.scopes:
        raise InvalidInput("confirm_token: it is required.")
    elif not is_confirmer(principal):
        raise Forbidden(
            "A token that can write confirms nothing: use one with the scopes continuity:write and"
            " confirm alone.",
            details={"scopes": sorted(principal.scopes & WRITES)},
        )
    else:
        _confirm_by_scope(principal, decision_id, user_id, shown)
    return {
        "ok": True,
        "decision_id": decision_id,
        "user_id": user_id,
        "confirmed": True,
        "message": "The decision is confirmed; it may be acted on once.",
    }


def _admit(request: ToolCallRequest) -> None:
    """Raise unless policy allows the call.

    A rule that says confirm denies it too: confirming a confirmation would not end. People can
    always decide in the inbox, by a signed link or by command.
    """
    authorization = authorize(request)
    if authorization.decision == "allow":
        return
    verdict = authorization.verdict
    if authorization.decision == "confirm":
        verdict = replace(verdict, reason="a person has to confirm this in the inbox")
    authorization = Authorization(verdict, "deny")
    raise deny(request, authorization)


def _confirm_by_scope(
    principal: Principal, decision_id: int, user_id: str, shown: str | None
) -> None:
    decision = Decision.objects.filter(pk=decision_id, workspace_id=principal.workspace_id).first()
    if decision is None or not _may_try(principal, decision, user_id):
        _record_try(principal, decision_id, how="api", failed="unknown")
        raise ConfirmTokenInvalid(_INVALID)
    try:
        confirm(decision_id=decision_id, by=principal.id, how="api", shown=shown)
    except NotAsShown:
        raise
    except DecisionNotFound:
        _record_try(principal, decision_id, how="api", failed="nothing waits")
        raise ConfirmTokenInvalid(_INVALID) from None
    except (Conflict, Forbidden):  # `confirm` audited this attempt
        raise ConfirmTokenInvalid(_INVALID) from None


def _may_try(principal: Principal, decision: Decision, user_id: str) -> bool:
    """Return whether the credential may try; `confirm` refuses and records one's own request."""
    is_own = decision.principal_id == principal.id
    return decision.user_id in (None, user_id) and (is_own or may_confirm(principal, decision))


def _confirm_with_token(
    principal: Principal, decision_id: int, user_id: str, token: str, shown: str | None
) -> None:
    """Confirm with the decision's token. Commits, also the count of wrong tries.

    Raises:
        NotAsShown: The token is right, but `shown` is not the digest of the decision.
        ConfirmTokenInvalid: The decision is unknown or another user's, or the token is wrong,
            revoked, used or expired (S2: one error for all).
    """
    with transaction.atomic():
        confirmation = _find(principal, decision_id, user_id)
        failure = _try(principal, confirmation, token, shown)
        if failure:
            about = {"confirmationId": confirmation.id} if confirmation else {}
            _record_try(principal, decision_id, how="token", failed=failure, **about)
    if failure == OTHER_DIGEST:
        raise NotAsShown(decision_id)
    if failure:
        raise ConfirmTokenInvalid(_INVALID)


def _find(principal: Principal, decision_id: int, user_id: str) -> Confirmation | None:
    """Lock and return the confirmation if it belongs to the caller's workspace and this user."""
    if not principal.may_act_for(user_id):
        return None
    # One try at a time: PostgreSQL locks the row; SQLite serializes write transactions.
    rows = Confirmation.objects.select_for_update(of=("self",)).select_related("decision")
    return rows.filter(
        decision_id=decision_id,
        decision__workspace_id=principal.workspace_id,
        decision__user_id=user_id,
    ).first()


def _try(
    principal: Principal, confirmation: Confirmation | None, token: str, shown: str | None
) -> str:
    """Confirm if the token is right; return the reason of a failure, or an empty string."""
    if confirmation is None or not confirmation.token_digest:
        mac_matches(DIGEST_PURPOSE, token.encode(), "")  # same time as for a known decision
        return "unknown" if confirmation is None else "no token"
    if not mac_matches(
        DIGEST_PURPOSE, token_message(confirmation.decision, token), confirmation.token_digest
    ):
        return _count_wrong_try(confirmation)
    is_waiting = confirmation.status == ConfirmationStatus.WAITING
    if is_waiting and shown is not None and not _is_shown(confirmation, shown):
        return OTHER_DIGEST
    if not resolve(confirmation, ConfirmationStatus.CONFIRMED, by=principal.id, how="token"):
        return confirmation.status
    return ""


def _is_shown(confirmation: Confirmation, shown: str) -> bool:
    try:
        return is_shown_digest(confirmation.decision, shown)
    except CannotBeShown:
        return False


def _count_wrong_try(confirmation: Confirmation) -> str:
    if confirmation.status != ConfirmationStatus.WAITING:
        return "wrong"
    confirmation.wrong_tries += 1
    if confirmation.wrong_tries >= WRONG_TRIES:
        confirmation.token_digest = None
    confirmation.save(update_fields=["wrong_tries", "token_digest"])
    return "wrong" if confirmation.token_digest else "burned"


def _record_try(principal: Principal, decision_id: int, **details: str) -> None:
    record(
        AuditEvent(
            "confirmation.tried",
            principal.id,
            "decision",
            str(decision_id),
            principal.tenant_id,
            principal.workspace_id,
            details,
        )
    )
