"""What callers can do with webhooks; REST and the admin come through here."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import admit_call, begin, use_of
from decisions.errors import Conflict, InvalidInput, TrustNotAllowed, WebhookNotFound
from decisions.identity.principals import Principal
from decisions.infra.clock import to_ms
from decisions.infra.ids import new_id
from decisions.security.keys import seal
from runners.errors import AddressNotAllowed, InvalidTarget
from runners.network.address import check_address
from runs.models import BEING_SENT, DeliveryStatus, Webhook, WebhookDelivery
from runs.webhooks import deliveries
from runs.webhooks.signing import new_secret

MAX_WEBHOOKS = 20  # of a workspace: each is one more message for every run


def create_webhook(
    *,
    principal: Principal,
    url: str,
    name: str = "",
    every_run: bool = True,
    confirmations: bool = False,
) -> dict[str, Any]:
    """Make a webhook and return it with its secret, which is never shown again.

    Args:
        confirmations: also tell what waits for a person, with a link that decides it. So whoever
            makes it has to be allowed to confirm: an agent must not have itself sent the link.

    Raises:
        Forbidden: Confirmations were asked for without the scope `confirm`.
        InvalidInput: No http(s) address.
        TrustNotAllowed: Not a public one, and the caller is remote.
        Conflict: The workspace has MAX_WEBHOOKS.
        PolicyDenied, ConfirmationRequired: As `deeds.admit_call`, here and of every change below.
    """
    principal.require("runs:write")
    if confirmations:
        principal.require("confirm")
    secret = new_secret()
    hook = Webhook(
        id=new_id("hook_"),
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        name=name or "webhook",
        url=_checked(url, principal),
        trust=principal.trust,
        every_run=every_run,
        tells_confirmations=confirmations,
        secret=seal(secret.encode()),
        created_by=principal.id,
        created_at=datetime.now(UTC),
    )
    asked = {
        "url": hook.url,
        "name": hook.name,
        "everyRun": every_run,
        "confirmations": confirmations,
    }
    approval = admit_call(use_of(principal, "create_webhook", asked))
    with transaction.atomic():
        begin(approval)
        if Webhook.objects.filter(workspace_id=principal.workspace_id).count() >= MAX_WEBHOOKS:
            raise Conflict(f"A workspace has at most {MAX_WEBHOOKS} webhooks; delete one first.")
        hook.save(force_insert=True)
        _record(
            principal,
            "created",
            hook,
            url=hook.url,
            everyRun=every_run,
            confirmations=confirmations,
        )
    return webhook_object(hook) | {"secret": secret}


def _checked(url: str, principal: Principal) -> str:
    try:
        return check_address(url, principal.trust)
    except InvalidTarget as error:
        raise InvalidInput(f"url: {error.message}") from None
    except AddressNotAllowed as error:
        raise TrustNotAllowed(f"url: {error.message}") from None


def list_webhooks(*, principal: Principal) -> dict[str, Any]:
    """Return the workspace's webhooks, newest first."""
    principal.require("runs:read")
    rows = Webhook.objects.filter(workspace_id=principal.workspace_id)
    return {"webhooks": [webhook_object(row) for row in rows.order_by("-created_at", "-id")]}


def get_webhook(*, principal: Principal, webhook_id: str) -> dict[str, Any]:
    """Return one of them.

    Raises:
        WebhookNotFound: Unknown, or another workspace's.
    """
    principal.require("runs:read")
    return webhook_object(_webhook(principal, webhook_id))


def delete_webhook(*, principal: Principal, webhook_id: str) -> dict[str, Any]:
    """Remove a webhook with its deliveries; the audit log keeps what was told.

    Raises:
        WebhookNotFound: Unknown, or another workspace's.
    """
    hook = _own(principal, webhook_id)
    approval = admit_call(use_of(principal, "delete_webhook", {"webhookId": hook.id}))
    with transaction.atomic():
        begin(approval)
        hook.delete()
        _record(principal, "deleted", hook, webhook_id=webhook_id)
    return {"success": True, "webhookId": webhook_id}


def enable_webhook(*, principal: Principal, webhook_id: str) -> dict[str, Any]:
    """Let a webhook be told again; deliveries that were given up can be replayed.

    Raises:
        WebhookNotFound: Unknown, or another workspace's.
    """
    principal.require("runs:write")
    hook = _webhook(principal, webhook_id)
    approval = admit_call(use_of(principal, "enable_webhook", {"webhookId": hook.id}))
    with transaction.atomic():
        begin(approval)
        off = Webhook.objects.filter(id=hook.id, disabled_at__isnull=False)
        if off.update(disabled_at=None, disabled_because=""):
            _record(principal, "enabled", hook)
    hook.refresh_from_db()
    return webhook_object(hook)


def disable_webhook(*, principal: Principal, webhook_id: str) -> dict[str, Any]:
    """Tell a webhook nothing until it is enabled again.

    Raises:
        WebhookNotFound: Unknown, or another workspace's.
    """
    hook = _own(principal, webhook_id)
    approval = admit_call(use_of(principal, "disable_webhook", {"webhookId": hook.id}))
    with transaction.atomic():
        begin(approval)
        deliveries.disable(hook.id, actor=principal.id, because=f"disabled by {principal.id}")
    hook.refresh_from_db()
    return webhook_object(hook)


def list_deliveries(
    *,
    principal: Principal,
    webhook_id: str,
    status: str | None = None,
    limit: int = 50,
    offset: int = 0,
) -> dict[str, Any]:
    """Return {deliveries, hasMore, nextCursor} of a webhook, newest first.

    Raises:
        WebhookNotFound: Unknown, or another workspace's.
    """
    principal.require("runs:read")
    rows = _deliveries(_webhook(principal, webhook_id))
    if status is not None:
        rows = rows.filter(status=status)
    page = list(rows.order_by("-created_at", "-id")[offset : offset + limit + 1])
    more = len(page) > limit
    return {
        "deliveries": [delivery_object(row) for row in page[:limit]],
        "hasMore": more,
        "nextCursor": str(offset + limit) if more else None,
    }


def replay_delivery(*, principal: Principal, webhook_id: str, delivery_id: str) -> dict[str, Any]:
    """Send a message again from the start, under the id it had, whatever became of it.

    Raises:
        WebhookNotFound: The webhook or the delivery is unknown, or another workspace's.
        Conflict: The webhook is disabled.
    """
    principal.require("runs:write")
    hook = _webhook(principal, webhook_id)
    if hook.disabled_at is not None:
        raise Conflict("The webhook is disabled; enable it first.")
    asked = {"webhookId": hook.id, "deliveryId": delivery_id}
    approval = admit_call(use_of(principal, "replay_webhook_delivery", asked))
    now = datetime.now(UTC)
    with transaction.atomic():
        begin(approval)
        again = _deliveries(hook).filter(id=delivery_id)
        if not again.update(
            status=DeliveryStatus.PENDING,
            attempts=0,
            epoch=F("epoch") + 1,
            next_try_at=now,
            settled_at=None,
        ):
            raise WebhookNotFound(f"This webhook has no delivery {delivery_id[:64]}.")
        _record(principal, "replayed", hook, deliveryId=delivery_id)
    return delivery_object(_deliveries(hook).get(id=delivery_id))


def check_webhook_option(principal: Principal, webhook_id: str | None) -> None:
    """Refuse a submit that names a webhook which could not be told.

    Raises:
        InvalidInput: Unknown, another workspace's, or disabled.
    """
    if webhook_id is None:
        return
    named = Webhook.objects.filter(
        id=webhook_id, workspace_id=principal.workspace_id, disabled_at__isnull=True
    )
    if not named.exists():
        raise InvalidInput(
            f"options.webhookId: there is no webhook {webhook_id[:64]!r} that works."
        )


def _own(principal: Principal, webhook_id: str) -> Webhook:
    """Return a webhook that the caller may silence: what people are asked by is not an agent's to
    take away.
    """
    principal.require("runs:write")
    hook = _webhook(principal, webhook_id)
    if hook.tells_confirmations:
        principal.require("confirm")
    return hook


def _webhook(principal: Principal, webhook_id: str) -> Webhook:
    hook = Webhook.objects.filter(id=webhook_id, workspace_id=principal.workspace_id).first()
    if hook is None:
        raise WebhookNotFound(f"There is no webhook {webhook_id[:64]}.")
    return hook


def _deliveries(hook: Webhook) -> QuerySet[WebhookDelivery]:
    return WebhookDelivery.objects.filter(webhook_id=hook.id)


def _record(principal: Principal, verb: str, hook: Webhook, **metadata: Any) -> None:
    place = hook.tenant_id, hook.workspace_id
    resource = str(metadata.pop("webhook_id", hook.id))  # a deleted row has none
    record(AuditEvent(f"webhook.{verb}", principal.id, "webhook", resource, *place, metadata))


def webhook_object(hook: Webhook) -> dict[str, Any]:
    """Return a webhook as every door shows it, without its secret."""
    shown: dict[str, Any] = {
        "webhookId": hook.id,
        "name": hook.name,
        "url": hook.url,
        "everyRun": hook.every_run,
        "confirmations": hook.tells_confirmations,
        "enabled": hook.disabled_at is None,
        "createdAt": to_ms(hook.created_at),
    }
    if hook.disabled_at is not None:
        shown |= {"disabledAt": to_ms(hook.disabled_at), "reason": hook.disabled_because}
    return shown


def delivery_object(row: WebhookDelivery) -> dict[str, Any]:
    """Return a delivery as every door shows it."""
    waits = row.status == DeliveryStatus.PENDING and row.next_try_at != BEING_SENT
    return {
        "deliveryId": row.id,
        "webhookId": row.webhook_id,
        "runId": row.run_id,
        "decisionId": row.decision_id,
        "type": row.event,
        "status": row.status,
        "attempts": row.attempts,
        "statusCode": row.status_code,
        "error": row.error or None,
        "createdAt": to_ms(row.created_at),
        "triedAt": to_ms(row.tried_at),
        "nextTryAt": to_ms(row.next_try_at) if waits else None,
    }
