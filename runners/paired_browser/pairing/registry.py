"""The registry of paired browsers: pair, connect, disconnect, revoke. Every function commits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.foundation.errors import Conflict, NotAuthenticated
from decisions.foundation.infra.batches import delete_in_batches
from decisions.foundation.infra.ids import new_id
from decisions.foundation.validation.storable import storable_text
from decisions.identity.principals import (
    Principal,
    is_credential_active,
    principal_data,
    principal_from,
)
from runners.models import PluginClient, new_client_id
from runners.paired_browser.messaging.notices import send_to_browser
from runners.paired_browser.pairing.reconnect_secrets import new_secret, standing_of
from runners.paired_browser.pairing.selectors import UNHEALTHY_AFTER, browser_name
from runners.paired_browser.pairing.tickets import redeem_ticket

BROWSERS_MAX = 50  # of one principal
REVOKED_KEPT = timedelta(days=30)


class NotPaired(NotAuthenticated):
    """The pairing of a browser is over, or never was."""

    def __init__(self) -> None:
        super().__init__("This browser is not paired here any more; pair it again.")


class TooManyBrowsers(Conflict):
    """The principal has too many paired browsers."""

    recovery = "Remove a paired browser that is not used any more, then pair this one."


@dataclass(frozen=True, slots=True)
class Activation:
    """An accepted connection of a browser.

    Attributes:
        secret: with which the browser connects the next time.
    """

    client_id: str
    connection_id: str
    generation: int
    secret: str
    name: str
    principal: Principal


def pair_browser_of(
    ticket: str, about: Mapping[str, Any], *, client_id: str | None = None
) -> Activation:
    """Add the browser that presents a ticket.

    Args:
        about: {extension, browser} of its first message.
        client_id: its id; None: a new one.

    Raises:
        NotAuthenticated: As `redeem_ticket`.
        TooManyBrowsers: The principal has BROWSERS_MAX browsers.
    """
    client_id = client_id or new_client_id()
    secret, digest = new_secret(client_id, 1)
    with transaction.atomic():
        principal, stored = redeem_ticket(ticket)
        mine = PluginClient.objects.filter(principal_id=principal.id, revoked_at__isnull=True)
        if mine.filter(workspace_id=principal.workspace_id).count() >= BROWSERS_MAX:
            raise TooManyBrowsers(f"{BROWSERS_MAX} browsers are paired for {principal.id} already.")
        client = PluginClient(
            id=client_id,
            tenant_id=principal.tenant_id,
            workspace_id=principal.workspace_id,
            principal_id=principal.id,
            principal=principal_data(principal),
            paired_by=stored.created_by,
            name=stored.name or browser_name(about["browser"]["userAgent"]),
            secret_digest=digest,
        )
        _describe(client, about)
        _connect(client)
        client.save(force_insert=True)
        details = {
            "name": client.name,
            "extensionId": client.extension_id,
            "extensionVersion": client.extension_version,
            "userAgent": client.user_agent,
        }
        record(_audit_event("plugin.paired", principal.id, client, details))
    return _activation(client, secret)


def reconnect_browser(client_id: str, secret: str, about: Mapping[str, Any]) -> Activation:
    """Connect a paired browser that presents its secret, and replace the secret.

    The previous secret stays valid until `confirm_secret`, so a browser that never received the
    newest one can connect. An earlier one was copied: the browser is revoked.

    Raises:
        NotPaired: The browser is unknown or revoked, or the secret is not one of its two
            valid ones, or the credential of its principal is revoked. The error does not say which.
    """
    is_copied = False
    with transaction.atomic():
        rows = PluginClient.objects.select_for_update().filter(revoked_at__isnull=True)
        client = rows.filter(id=storable_text(client_id)[:64]).first()
        standing = "unknown" if client is None else standing_of(secret, client)
        if client is None or standing == "unknown":
            raise NotPaired
        is_copied = standing == "earlier"
        if not is_copied:
            if not is_credential_active(principal_from(client.principal)):
                raise NotPaired
            client.generation += 1
            if standing == "current":
                client.previous_digest = client.secret_digest
            renewed, client.secret_digest = new_secret(client.id, client.generation)
            _describe(client, about)
            _connect(client)
            client.save()
    if is_copied:
        revoke_browser(client, actor="plugin", reason="secret_reused")
        raise NotPaired
    send_to_browser(client.id, {"kind": "replaced", "connectionId": client.connection_id})
    return _activation(client, renewed)


def confirm_secret(client_id: str, connection_id: str) -> None:
    """Invalidate the previous secret: the browser has received the newest one."""
    rows = PluginClient.objects.filter(id=client_id, connection_id=connection_id)
    rows.filter(previous_digest__isnull=False).update(previous_digest=None)


def disconnect_browser(client_id: str, connection_id: str) -> None:
    """Mark a connection as closed, unless the browser has a newer one."""
    rows = PluginClient.objects.filter(id=client_id, connection_id=connection_id)
    rows.update(connection_id=None, last_seen_at=datetime.now(UTC))


def revoke_browser(client: PluginClient, *, actor: str, reason: str = "") -> bool:
    """Remove a browser: its secrets are invalid, and its connection is closed; audited. Return
    whether it was paired until now.
    """
    with transaction.atomic():
        rows = PluginClient.objects.filter(id=client.id, revoked_at__isnull=True)
        revoked = rows.update(
            revoked_at=datetime.now(UTC),
            connection_id=None,
            secret_digest="",
            previous_digest=None,
        )
        if not revoked:
            return False
        details = {"name": client.name, "principal": client.principal_id}
        if reason:
            details["reason"] = reason
        record(_audit_event("plugin.revoked", actor, client, details))
    transaction.on_commit(lambda: send_to_browser(client.id, {"kind": "revoked"}))
    return True


def keep_connected(
    connections: Mapping[str, str], *, seen: Collection[str], answered: Collection[str]
) -> dict[str, str]:
    """Record which of a web process's browsers were seen, and return those whose connection has to
    be closed, each with the reason: `revoked` or `replaced`.

    Args:
        connections: connection id by client id.
        seen: browsers that sent a message since the last call.
        answered: browsers that answered a ping or acknowledged an action since then.
    """
    if seen:
        alive = PluginClient.objects.filter(id__in=seen, connection_id__isnull=False)
        alive.update(last_seen_at=datetime.now(UTC))
    if answered:
        slow = PluginClient.objects.filter(id__in=answered, timeouts__gte=UNHEALTHY_AFTER)
        slow.update(timeouts=0)
    rows = PluginClient.objects.filter(id__in=list(connections)).in_bulk()
    credentials: dict[str, bool] = {}
    ended = {}
    for client_id, connection_id in connections.items():
        client = rows.get(client_id)
        if client is None or client.revoked_at or not _may_stay(client, credentials):
            ended[client_id] = "revoked"
        elif client.connection_id != connection_id:
            ended[client_id] = "replaced"
    return ended


def _may_stay(client: PluginClient, known: dict[str, bool]) -> bool:
    """Return whether the credential of a browser's principal is active; one query a principal."""
    if client.principal_id not in known:
        known[client.principal_id] = is_credential_active(principal_from(client.principal))
    return known[client.principal_id]


def action_sent(client_id: str) -> None:
    """Record that an action is sent to a browser: the automatic choice prefers the last one."""
    PluginClient.objects.filter(id=client_id).update(last_used_at=datetime.now(UTC))


def action_answered(client_id: str) -> None:
    """Record that a browser finished an action in time."""
    PluginClient.objects.filter(id=client_id, timeouts__gt=0).update(timeouts=0)


def action_timed_out(client_id: str) -> None:
    """Count an action that a browser did not acknowledge or finish in time."""
    with transaction.atomic():
        client = PluginClient.objects.select_for_update().filter(id=client_id).first()
        if client is not None:
            client.timeouts += 1
            client.save(update_fields=["timeouts"])


def delete_revoked_browsers() -> int:
    """Delete browsers that were revoked long ago; return how many."""
    limit = datetime.now(UTC) - REVOKED_KEPT
    return delete_in_batches(PluginClient.objects.filter(revoked_at__lte=limit))


def _activation(client: PluginClient, secret: str) -> Activation:
    return Activation(
        client.id,
        str(client.connection_id),
        client.generation,
        secret,
        client.name,
        principal_from(client.principal),
    )


def _connect(client: PluginClient) -> None:
    now = datetime.now(UTC)
    client.connection_id, client.connected_at = new_id("plx_"), now
    client.last_seen_at, client.timeouts = now, 0


def _describe(client: PluginClient, about: Mapping[str, Any]) -> None:
    extension, browser = about["extension"], about["browser"]
    client.extension_id = storable_text(extension["id"])
    client.extension_name = storable_text(extension["name"])
    client.extension_version = storable_text(extension["version"])
    client.user_agent = storable_text(browser["userAgent"])
    client.language = storable_text(browser.get("language", ""))


def _audit_event(
    action: str, actor: str, client: PluginClient, details: dict[str, Any]
) -> AuditEvent:
    owner = client.tenant_id, client.workspace_id
    return AuditEvent(action, actor, "plugin_client", client.id, *owner, details)
