"""Tickets: how a page in a browser, which can send no header with a WebSocket, shows who it is. One
is good for one connection of one task, and for a minute.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from decisions.errors import NotAuthenticated
from decisions.identity.principals import Principal, is_credential_active
from decisions.infra.clock import to_ms
from decisions.security.keys import mac, macs
from runs.conversations.selectors import visible_task
from runs.models import TaskTicket

LIFETIME = timedelta(seconds=60)
_PREFIX = "tkt_"
_PURPOSE = "task ticket"


def create_ticket(*, principal: Principal, task_id: str) -> dict[str, Any]:
    """Return {ticket, taskId, expiresAt} for a task; the ticket cannot be shown again. Commits.

    Raises:
        TaskNotFound: As `selectors.visible_task`.
    """
    principal.require("tasks:read")
    task = visible_task(principal, task_id)
    secret = _PREFIX + secrets.token_urlsafe(32)
    until = datetime.now(UTC) + LIFETIME
    TaskTicket.objects.create(
        digest=mac(_PURPOSE, secret.encode()),
        task=task,
        principal=_told(principal),
        expires_at=until,
    )
    return {"ticket": secret, "taskId": task.id, "expiresAt": to_ms(until)}


def redeem_ticket(secret: str, *, task_id: str) -> Principal:
    """Use a ticket up and return whose it is. Commits.

    Raises:
        NotAuthenticated: Unknown, used, over, another task's, or whoever it was made for may
            nothing any more: all read the same.
    """
    refused = NotAuthenticated("The ticket is not valid here.")
    if not secret.startswith(_PREFIX) or len(secret) > 128 or not secret.isascii():
        raise refused
    digests = macs(_PURPOSE, secret.encode())
    good = TaskTicket.objects.filter(
        digest__in=digests, task_id=task_id, expires_at__gt=datetime.now(UTC)
    )
    ticket = good.first()
    if ticket is None or not good.delete()[0]:
        raise refused  # two at once: one of them deleted it
    principal = _principal(ticket.principal)
    if not is_credential_active(principal):
        raise refused
    return principal


def _told(principal: Principal) -> dict[str, Any]:
    acts_for = None if principal.acts_for is None else sorted(principal.acts_for)
    return {
        "id": principal.id,
        "tenantId": principal.tenant_id,
        "actsFor": acts_for,
        "workspaceId": principal.workspace_id,
        "scopes": sorted(principal.scopes),
        "trust": principal.trust,
    }


def _principal(told: dict[str, Any]) -> Principal:
    return Principal(
        id=told["id"],
        tenant_id=told["tenantId"],
        workspace_id=told["workspaceId"],
        scopes=frozenset(told["scopes"]),
        trust="local" if told["trust"] == "local" else "remote",
        acts_for=None if told["actsFor"] is None else frozenset(told["actsFor"]),
    )
