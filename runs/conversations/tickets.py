"""Tickets: single-use credentials for a task's WebSocket, valid for one minute.

A page in a browser cannot send an Authorization header with a WebSocket, so it sends a ticket.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from decisions.foundation.errors import NotAuthenticated
from decisions.foundation.infra.clock import to_ms
from decisions.foundation.security.keys import mac, macs
from decisions.identity.principals import (
    Principal,
    is_credential_active,
    principal_data,
    principal_from,
)
from runs.conversations.selectors import visible_task
from runs.models import TaskTicket

LIFETIME = timedelta(seconds=60)
_PREFIX = "tkt_"
_PURPOSE = "task ticket"


def create_ticket(*, principal: Principal, task_id: str) -> dict[str, Any]:
    """Create a ticket and return {ticket, taskId, expiresAt}; only its digest is stored. Commits.

    Raises:
        TaskNotFound: As `selectors.visible_task`.
    """
    principal.require("tasks:read")
    task = visible_task(principal, task_id)
    secret = _PREFIX + secrets.token_urlsafe(32)
    expires_at = datetime.now(UTC) + LIFETIME
    TaskTicket.objects.create(
        digest=mac(_PURPOSE, secret.encode()),
        task=task,
        principal=principal_data(principal),
        expires_at=expires_at,
    )
    return {"ticket": secret, "taskId": task.id, "expiresAt": to_ms(expires_at)}


def redeem_ticket(secret: str, *, task_id: str) -> Principal:
    """Delete a ticket and return the principal that it was created for. Commits.

    Raises:
        NotAuthenticated: The ticket is unknown, used, expired or another task's, or the principal's
            credential is revoked. The error does not say which.
    """
    refused = NotAuthenticated("The ticket is not valid here.")
    if not secret.startswith(_PREFIX) or len(secret) > 128 or not secret.isascii():
        raise refused
    digests = macs(_PURPOSE, secret.encode())
    valid = TaskTicket.objects.filter(
        digest__in=digests, task_id=task_id, expires_at__gt=datetime.now(UTC)
    )
    ticket = valid.first()
    if ticket is None or not valid.delete()[0]:  # a concurrent request deleted it
        raise refused
    principal = principal_from(ticket.principal)
    if not is_credential_active(principal):
        raise refused
    return principal
