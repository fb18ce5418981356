"""The owner of state, objects and outcomes: a user of a workspace that the caller may act for."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from decisions.audit.record import AuditEvent, record
from decisions.foundation.errors import Forbidden, ForbiddenUser
from decisions.identity.authority import is_confirmer
from decisions.identity.principals import Principal, ensure_user
from decisions.models import User

WRITE = "continuity:write"


@dataclass(frozen=True, slots=True)
class Owner:
    """A user of a workspace, by the columns that its rows have."""

    tenant_id: str
    workspace_id: str
    user_id: str

    @property
    def columns(self) -> dict[str, str]:
        """The three columns, to create or to filter rows by."""
        return asdict(self)

    def lock(self) -> None:
        """Lock the user's row until the transaction ends, creating it if needed: all writes about
        one user are serialized.
        """
        # SQLite serializes write transactions anyway.
        rows = User.objects.select_for_update().filter(
            workspace_id=self.workspace_id, user_id=self.user_id
        )
        if not rows.values_list("pk"):
            ensure_user(workspace_id=self.workspace_id, user_id=self.user_id)
            rows.get()


def owner_of(principal: Principal, user_id: str, *, scope: str) -> Owner:
    """Return the user that a call is about, after checking the caller's rights.

    Call it outside a transaction: a refusal is audited, and a rollback would lose the audit row.

    Raises:
        Forbidden: The scope is missing, or the credential confirms calls and so writes nothing.
        ForbiddenUser: The caller may not act for this user.
    """
    principal.require(scope)
    if scope == WRITE and is_confirmer(principal):
        raise Forbidden("A token with the scope confirm confirms calls; it writes nothing.")
    require_user(principal, user_id)
    return Owner(principal.tenant_id, principal.workspace_id, user_id)


def require_user(principal: Principal, user_id: str) -> None:
    """Raise if the caller may not act for this user; audited.

    Raises:
        ForbiddenUser: The same error whether or not the user exists.
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
