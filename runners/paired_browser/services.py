"""The calls about paired browsers that REST offers: each caller pairs, sees and removes its own."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from decisions.authorization.authorize import admit_call, tool_call_request, use_approval
from decisions.foundation.infra.clock import to_ms
from decisions.foundation.validation.json_schema import page_of
from decisions.identity.principals import Principal
from runners.models import PluginClient
from runners.paired_browser.connections.snapshots import delete_snapshot, read_snapshot
from runners.paired_browser.pairing import tickets
from runners.paired_browser.pairing.registry import revoke_browser
from runners.paired_browser.pairing.selectors import (
    browser_of,
    browsers_of,
    is_connected,
    is_healthy,
)

READ, WRITE = "tasks:read", "tasks:write"


def create_ticket(*, principal: Principal, name: str = "") -> dict[str, Any]:
    """Create a ticket that pairs a browser with the caller, as `tickets.create_ticket`. Commits.

    Raises:
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    principal.require(WRITE)
    approval = admit_call(tool_call_request(principal, "pair_browser", {"name": name}))
    with transaction.atomic():
        use_approval(approval)
        return tickets.create_ticket(principal=principal, name=name)


def list_browsers(*, principal: Principal, limit: int = 50, offset: int = 0) -> dict[str, Any]:
    """Return {clients, total, hasMore, nextCursor}, the last seen first."""
    principal.require(READ)
    rows = browsers_of(principal)
    shown = [browser_object(client) for client in rows[offset : offset + limit]]
    return page_of("clients", shown, total=rows.count(), offset=offset)


def list_extensions(*, principal: Principal) -> dict[str, Any]:
    """Return {extensions}: the candidates for a task's browser (S1 §1), the last seen first."""
    principal.require(READ)
    return {
        "extensions": [
            {
                "clientId": client.id,
                "extensionId": client.extension_id,
                "extensionName": client.extension_name,
                "version": client.extension_version,
                "ua": client.user_agent,
                "connected": is_connected(client),
                "lastSeenAt": to_ms(client.last_seen_at),
            }
            for client in browsers_of(principal)
        ]
    }


def get_browser(*, principal: Principal, client_id: str) -> dict[str, Any]:
    """Return a paired browser.

    Raises:
        PairedBrowserNotFound: As `browser_of`.
    """
    principal.require(READ)
    return browser_object(browser_of(principal, client_id))


def get_snapshot(*, principal: Principal, client_id: str) -> dict[str, Any]:
    """Return what a paired browser has open, as `read_snapshot`.

    Raises:
        PairedBrowserNotFound: As `browser_of`.
    """
    principal.require(READ)
    return read_snapshot(browser_of(principal, client_id))


def revoke(*, principal: Principal, client_id: str) -> dict[str, Any]:
    """Remove a paired browser and close its connection. Commits.

    Raises:
        PairedBrowserNotFound: As `browser_of`.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    principal.require(WRITE)
    client = browser_of(principal, client_id)
    approval = admit_call(tool_call_request(principal, "remove_browser", {"clientId": client.id}))
    with transaction.atomic():
        use_approval(approval)
        revoked = revoke_browser(client, actor=principal.id)
    delete_snapshot(client.id)
    return {"clientId": client.id, "revoked": revoked}


def browser_object(client: PluginClient) -> dict[str, Any]:
    """Return a paired browser as the API shows it."""
    return {
        "clientId": client.id,
        "name": client.name,
        "connected": is_connected(client),
        "healthy": is_healthy(client),
        "principal": client.principal_id,
        "extensionId": client.extension_id,
        "extensionName": client.extension_name,
        "extensionVersion": client.extension_version,
        "userAgent": client.user_agent,
        "language": client.language,
        "pairedAt": to_ms(client.created_at),
        "connectedAt": to_ms(client.connected_at),
        "lastSeenAt": to_ms(client.last_seen_at),
        "lastUsedAt": to_ms(client.last_used_at),
    }
