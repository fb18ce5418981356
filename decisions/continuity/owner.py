"""Whose state, objects and outcomes these are: a user of a workspace."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from decisions.continuity.shared import require_user
from decisions.identity.principals import Principal, ensure_user
from decisions.models import User


@dataclass(frozen=True, slots=True)
class Owner:
    """A user of a workspace, by the columns that their rows carry."""

    tenant_id: str
    workspace_id: str
    user_id: str

    @property
    def columns(self) -> dict[str, str]:
        """The three columns, to make or to find rows by."""
        return asdict(self)

    def lock(self) -> None:
        """Let nobody else write of this user until the transaction ends; made when new."""
        # SQLite's transactions exclude each other anyway.
        mine = User.objects.select_for_update().filter(
            workspace_id=self.workspace_id, user_id=self.user_id
        )
        if not mine.values_list("pk"):
            ensure_user(workspace_id=self.workspace_id, user_id=self.user_id)
            mine.get()


def owner_of(principal: Principal, user_id: str, *, scope: str) -> Owner:
    """Return the user that a call is about. Not to be asked inside a transaction: a refusal is
    audited, and has to stay.

    Raises:
        Forbidden: The scope is missing.
        ForbiddenUser: The caller may not act for this user.
    """
    principal.require(scope)
    require_user(principal, user_id)
    return Owner(principal.tenant_id, principal.workspace_id, user_id)
