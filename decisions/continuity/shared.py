"""What the seven calls of the Continuity API share at every door (S2, continuity.md): the shape of
their errors, the id of a user, whom a caller may act for.
"""

from __future__ import annotations

from typing import Any

from decisions.audit.record import AuditEvent, record
from decisions.errors import ForbiddenUser, InvalidInput, Refused
from decisions.identity.principals import USER_ID_PATTERN, Principal

USER_ID: dict[str, Any] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 128,
    "pattern": USER_ID_PATTERN,
    "description": "Whom the call is about: a user that the token may act for.",
}
VALIDATION_ERROR = "validation_error"


def as_continuity_error(refusal: Refused) -> dict[str, str]:
    """Return a refusal as the Continuity API says it: {code, detail}. Codes that S2 does not name
    are ours in lower case.
    """
    code = VALIDATION_ERROR if refusal.code == InvalidInput.code else refusal.code.lower()
    return {"code": code, "detail": refusal.message}


def require_user(principal: Principal, user_id: str) -> None:
    """Refuse a call for a user whom the caller may not act for; the refusal is audited.

    Raises:
        ForbiddenUser: Foreign and unknown users read the same.
    """
    if principal.may_act_for(user_id):
        return
    record(
        AuditEvent(
            "access.refused",
            principal.id,
            "user",
            user_id,
            principal.tenant_id,
            principal.workspace_id,
            {"errorCode": ForbiddenUser.code},
        )
    )
    refusal = ForbiddenUser("This credential may not act for this user_id.")
    refusal.is_recorded = True
    raise refusal
