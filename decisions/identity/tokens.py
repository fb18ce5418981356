"""What an operator does with bearer tokens after they were made."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.identity.principals import clean_user_id, ensure_user
from decisions.models import Token


def revoke_token(*, token_id: str, actor: str) -> bool:
    """End a token from its next call on, audited; False where it is unknown or was revoked before.
    Commits.
    """
    with transaction.atomic():
        fresh = Token.objects.filter(id=token_id, revoked_at__isnull=True)
        if not fresh.update(revoked_at=datetime.now(UTC)):
            return False
        token = Token.objects.select_related("workspace").get(id=token_id)
        place = token.workspace.tenant_id, token.workspace_id
        record(AuditEvent("token.revoked", actor, "token", token.id, *place, {"name": token.name}))
    return True


def set_token_users(*, token_id: str, users: Iterable[str], actor: str) -> bool:
    """Name the users that a token may act for from its next call on, audited; none means any user
    of its workspace. False where it is unknown, revoked, or acts for just these already. Commits.

    Raises:
        InvalidInput: A user_id that is none.
    """
    wanted = sorted({clean_user_id(user_id) for user_id in users if user_id.strip()})
    with transaction.atomic():
        living = Token.objects.select_for_update(of=("self",)).select_related("workspace")
        token = living.filter(id=token_id, revoked_at__isnull=True).first()
        if token is None or token.acts_for == wanted:
            return False
        for user_id in wanted:
            ensure_user(workspace_id=token.workspace_id, user_id=user_id)
        before, token.acts_for = token.acts_for, wanted
        token.save(update_fields=["acts_for"])
        place = token.workspace.tenant_id, token.workspace_id
        told = {"name": token.name, "before": before, "actsFor": wanted}
        record(AuditEvent("token.acts_for_changed", actor, "token", token.id, *place, told))
    return True
