"""Tickets: single-use credentials that pair a browser, valid for five minutes.

A person creates one in the admin, by REST or with `manage.py plugin_ticket`, and gives it to the
extension. The browser then belongs to the principal that the ticket was created for.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from decisions.audit.record import AuditEvent, record
from decisions.foundation.errors import NotAuthenticated
from decisions.foundation.infra.clock import to_ms
from decisions.foundation.security.keys import mac, macs
from decisions.identity.principals import (
    Principal,
    is_credential_active,
    principal_data,
    principal_from,
)
from runners.models import PluginTicket

LIFETIME = timedelta(minutes=5)
PREFIX = "plt_"
SCOPE = "tasks:write"
_PURPOSE = "plugin ticket"
_NOT_VALID = "The ticket is not valid here; create a new one."


def create_ticket(
    *, principal: Principal, name: str = "", actor: str | None = None
) -> dict[str, Any]:
    """Create a ticket and return {ticket, expiresAt}; only its digest is stored. Commits.

    Args:
        principal: whose tasks may use the browser.
        name: the name that the browser gets; empty: the browser and its system.
        actor: who creates it, if that is not the principal.

    Raises:
        Forbidden: The caller lacks the scope tasks:write.
    """
    principal.require(SCOPE)
    secret = PREFIX + secrets.token_urlsafe(32)
    now = datetime.now(UTC)
    expires_at = now + LIFETIME
    digest = mac(_PURPOSE, secret.encode())
    created_by = actor or principal.id
    with transaction.atomic():
        PluginTicket.objects.filter(expires_at__lte=now).delete()
        PluginTicket.objects.create(
            digest=digest,
            principal=principal_data(principal),
            name=name.strip()[:128],
            created_by=created_by,
            expires_at=expires_at,
        )
        event = AuditEvent(
            "plugin.ticket_created",
            created_by,
            "plugin_ticket",
            digest[:16],
            principal.tenant_id,
            principal.workspace_id,
            {"principal": principal.id},
        )
        record(event)
    return {"ticket": secret, "expiresAt": to_ms(expires_at)}


def check_ticket(secret: str) -> None:
    """Refuse a ticket that `redeem_ticket` would refuse, without using it up.

    Raises:
        NotAuthenticated: As `redeem_ticket`.
    """
    if not _valid(secret).exists():
        raise NotAuthenticated(_NOT_VALID)


def redeem_ticket(secret: str) -> tuple[Principal, PluginTicket]:
    """Delete a ticket, in the caller's transaction; return the principal that it was created for,
    and what was stored.

    Raises:
        NotAuthenticated: The ticket is unknown, used or expired, or the principal's credential is
            revoked. The error does not say which.
    """
    valid = _valid(secret)
    ticket = valid.first()
    if ticket is None or not valid.delete()[0]:  # a concurrent connection deleted it
        raise NotAuthenticated(_NOT_VALID)
    principal = principal_from(ticket.principal)
    if not is_credential_active(principal):
        raise NotAuthenticated(_NOT_VALID)
    return principal, ticket


def _valid(secret: str) -> QuerySet[PluginTicket]:
    if not secret.startswith(PREFIX) or not secret.isascii():
        return PluginTicket.objects.none()
    digests = macs(_PURPOSE, secret.encode())
    return PluginTicket.objects.filter(digest__in=digests, expires_at__gt=datetime.now(UTC))
