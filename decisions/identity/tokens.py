"""The lifetime of bearer tokens, and changes of existing ones: revocation, the users that they may
act for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.foundation.errors import InvalidInput
from decisions.foundation.validation.storable import storable_text
from decisions.identity.authority import CONFIRM, WRITES
from decisions.identity.principals import (
    Principal,
    as_trust,
    clean_user_id,
    ensure_user,
    valid_token,
)
from decisions.models import Token
from decisions.signals import token_users_changed

EXPIRY_WARNING = timedelta(days=14)  # operators are warned this long before a token expires
LIFETIME_MAX = timedelta(days=3650)
_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}


def parse_lifetime(text: str) -> timedelta:
    """Return the lifetime that a text such as `90d`, `12h` or `30m` means.

    Raises:
        InvalidInput: It is no such text, or means more than ten years.
    """
    match = re.fullmatch(r"([1-9][0-9]{0,6})([dhm])", text.strip())
    lifetime = int(match[1]) * _UNITS[match[2]] if match else None
    if lifetime is None or lifetime > LIFETIME_MAX:
        raise InvalidInput(
            f"{text[:32]!r} is not a lifetime: write a number of days, hours or minutes, such as"
            " 90d, 12h or 30m, of at most 3650d."
        )
    return lifetime


def token_state(token: Token) -> str:
    """Return `active`, `expires soon`, `expired` or `revoked`."""
    if token.revoked_at is not None:
        return "revoked"
    now = datetime.now(UTC)
    if token.expires_at is None or token.expires_at > now + EXPIRY_WARNING:
        return "active"
    return "expires soon" if token.expires_at > now else "expired"


def list_expiring_tokens() -> list[Token]:
    """Return the valid tokens that expire within EXPIRY_WARNING, the next one first."""
    soon = Token.objects.filter(valid_token(), expires_at__lte=datetime.now(UTC) + EXPIRY_WARNING)
    return list(soon.order_by("expires_at"))


def list_tokens_that_cannot_confirm() -> list[Token]:
    """Return the valid tokens whose scope `confirm` has no effect, by name: those that can write,
    and those that are limited to users (`authority.may_confirm`).
    """
    holders = (token for token in Token.objects.filter(valid_token()) if CONFIRM in token.scopes)
    idle = (token for token in holders if token.acts_for or WRITES & set(token.scopes))
    return sorted(idle, key=lambda token: token.name)


def principal_of_token(token_id: str) -> Principal:
    """Return the principal of a valid token, for an operator who acts for its holder.

    Raises:
        InvalidInput: There is no valid token with this id.
    """
    valid = Token.objects.filter(valid_token(), id=storable_text(token_id))
    token = valid.select_related("workspace").first()
    if token is None:
        raise InvalidInput(f"There is no valid token {token_id[:64]}.")
    return Principal(
        id=f"token:{token.id}",
        tenant_id=token.workspace.tenant_id,
        workspace_id=token.workspace_id,
        scopes=frozenset(token.scopes),
        trust=as_trust(token.trust),
        acts_for=frozenset(token.acts_for) or None,
    )


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
    """Set the users that a token may act for from its next call on; its webhooks receive what it
    may read, and its open streams end. Audited. Commits.

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
        token_users_changed.send(sender=Token, token=token)
    return True
