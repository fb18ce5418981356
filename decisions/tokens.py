"""What an operator does with bearer tokens after they were made."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import transaction

from decisions.audit import Deed, record
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
        record(Deed("token.revoked", actor, "token", token.id, *place, {"name": token.name}))
    return True
