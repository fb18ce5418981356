"""Changes of existing bearer tokens: revocation, and the users that they may act for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.identity.principals import clean_user_id, ensure_user
from decisions.models import Token


def revoke_token(*, token_id: str, actor: str) -> bool:
    """Revoke a token from its next call on; audited. Commits.

    Returns False if the token is unknown or already revoked.
    """
    with transaction.atomic():
        fresh = Token.objects.filter(id=token_id, revoked_at__isnull=True)
        if not fresh.update(revoked_at=datetime.now(UTC)):
            return False
        token = Token.objects.select_related("workspace").get(id=token_id)
        owner = token.workspace.tenant_id, token.workspace_id
        record(AuditEvent("token.revoked", actor, "token", token.id, *owner, {"name": token.name}))
    return True


def set_token_users(*, token_id: str, users: Iterable[str], actor: str) -> bool:
    """Set the users that a token may act for from its next call on; audited. Commits.

    Returns False if the token is unknown, revoked, or already acts for exactly these users.

    Args:
        users: user_ids; empty for any user of the token's workspace.

    Raises:
        InvalidInput: A user_id is malformed.
    """
    wanted = sorted({clean_user_id(user_id) for user_id in users if user_id.strip()})
    with transaction.atomic():
        locked = Token.objects.select_for_update(of=("self",)).select_related("workspace")
        token = locked.filter(id=token_id, revoked_at__isnull=True).first()
        if token is None or token.acts_for == wanted:
            return False
        for user_id in wanted:
            ensure_user(workspace_id=token.workspace_id, user_id=user_id)
        before, token.acts_for = token.acts_for, wanted
        token.save(update_fields=["acts_for"])
        owner = token.workspace.tenant_id, token.workspace_id
        details = {"name": token.name, "before": before, "actsFor": wanted}
        record(AuditEvent("token.acts_for_changed", actor, "token", token.id, *owner, details))
    return True
