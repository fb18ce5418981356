"""Operations on webhooks, for the REST API and the admin site."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import admit_call, tool_call_request, use_approval
from decisions.foundation.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    TrustNotAllowed,
    WebhookNotFound,
)
from decisions.foundation.infra.clock import to_ms
from decisions.foundation.infra.ids import new_id
from decisions.foundation.security.sealed_columns import seal_column
from decisions.identity.authority import subscribers_seen_by, users_text
from decisions.identity.principals import Principal
from decisions.models import Token
from runners.errors import AddressNotAllowed, InvalidTarget
from runners.network.address import check_address
from runs.models import BEING_SENT, DeliveryStatus, Webhook, WebhookDelivery
from runs.webhooks import deliveries
from runs.webhooks.signing import new_secret

MAX_WEBHOOKS = 20  # per workspace: every run sends a message to each


def create_webhook(
    *,
    principal: Principal,
    url: str,
    name: str = "",
    every_run: bool = True,
    confirmations: bool = False,
    questions: bool = False,
    confirmation_arguments: bool = False,
) -> dict[str, Any]:
    """Create a webhook and return it with its secret, which is never shown again.

    Args:
        confirmations: also send waiting confirmations, with a link to decide them. The caller needs
            the scope `confirm` for it: an agent must not have the link sent to itself.
        confirmation_arguments: send the exact arguments of these calls; they may hold secrets.
        questions: also send the questions of runs that wait for an answer.

    Raises:
        Forbidden: `confirmations` without the scope `confirm`, or by one limited to users.
        InvalidInput: The url is not an http(s) address, or `confirmation_arguments` without
            `confirmations`.
        TrustNotAllowed: The address is not public, and the caller is remote.
        Conflict: The workspace has MAX_WEBHOOKS.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`; also of the changes below.
    """
    principal.require("runs:write")
    _check_confirmations(principal, confirmations, confirmation_arguments)
    secret = new_secret()
    sends = {
        "everyRun": every_run,
        "confirmations": confirmations,
        "questions": questions,
        "confirmationArguments": confirmation_arguments,
    }
    hook = Webhook(
        id=new_id("hook_"),
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        name=name or "webhook",
        url=_checked_url(url, principal),
        trust=principal.trust,
        every_run=every_run,
        tells_confirmations=confirmations,
        tells_questions=questions,
        sends_arguments=confirmation_arguments,
        created_by=principal.id,
        users=users_text(principal.acts_for),
        created_at=datetime.now(UTC),
    )
    hook.secret = seal_column(hook, "secret", secret.encode())
    arguments = {"url": hook.url, "name": hook.name, **sends}
    approval = admit_call(tool_call_request(principal, "create_webhook", arguments))
    with transaction.atomic():
        use_approval(approval)
        if Webhook.objects.filter(workspace_id=principal.workspace_id).count() >= MAX_WEBHOOKS:
            raise Conflict(f"A workspace has at most {MAX_WEBHOOKS} webhooks; delete one first.")
        hook.save(force_insert=True)
        _record(principal, "created", hook, url=hook.url, **sends)
    return webhook_object(hook) | {"secret": secret}


def _check_confirmations(principal: Principal, wanted: bool, with_arguments: bool) -> None:
    if with_arguments and not wanted:
        raise InvalidInput("confirmationArguments: it needs confirmations.")
    if not wanted:
        return
    principal.require("confirm")
    if principal.acts_for is not None:
        raise Forbidden(
            "This token acts for some users only, so it confirms no call and receives none to"
            " confirm; create the webhook with another token."
        )


def _checked_url(url: str, principal: Principal) -> str:
    try:
        return check_address(url, principal.trust)
    except InvalidTarget as error:
        raise InvalidInput(f"url: {error.message}") from None
    except AddressNotAllowed as error:
        raise TrustNotAllowed(f"url: {error.message}") from None


def list_webhooks(*, principal: Principal) -> dict[str, Any]:
    """Return the webhooks that exist for the caller, newest first."""
    principal.require("runs:read")
    rows = _visible(principal)
    return {"webhooks": [webhook_object(row) for row in rows.order_by("-created_at", "-id")]}


def get_webhook(*, principal: Principal, webhook_id: str) -> dict[str, Any]:
    """Return a webhook.

    Raises:
        WebhookNotFound: Unknown, or another's.
    """
    principal.require("runs:read")
    return webhook_object(_webhook(principal, webhook_id))


def delete_webhook(*, principal: Principal, webhook_id: str) -> dict[str, Any]:
    """Delete a webhook with its deliveries; the audit log keeps their results.

    Raises:
        WebhookNotFound: Unknown, or another's.
    """
    hook = _disposable(principal, webhook_id)
    approval = admit_call(tool_call_request(principal, "delete_webhook", {"webhookId": hook.id}))
    with transaction.atomic():
        use_approval(approval)
        Webhook.objects.select_for_update().filter(id=hook.id).first()  # before its deliveries
        hook.delete()
        _record(principal, "deleted", hook, webhook_id=webhook_id)
    return {"success": True, "webhookId": webhook_id}


def enable_webhook(*, principal: Principal, webhook_id: str) -> dict[str, Any]:
    """Send to a disabled webhook again; its failed deliveries can be replayed.

    Raises:
        WebhookNotFound: Unknown, or another's.
    """
    principal.require("runs:write")
    hook = _webhook(principal, webhook_id)
    approval = admit_call(tool_call_request(principal, "enable_webhook", {"webhookId": hook.id}))
    with transaction.atomic():
        use_approval(approval)
        off = Webhook.objects.filter(id=hook.id, disabled_at__isnull=False)
        if off.update(disabled_at=None, disabled_because="", failing_since=None):
            _record(principal, "enabled", hook)
    hook.refresh_from_db()
    return webhook_object(hook)


def disable_webhook(*, principal: Principal, webhook_id: str) -> dict[str, Any]:
    """Send nothing to a webhook until it is enabled again; its pending deliveries fail.

    Raises:
        WebhookNotFound: Unknown, or another's.
    """
    hook = _disposable(principal, webhook_id)
    approval = admit_call(tool_call_request(principal, "disable_webhook", {"webhookId": hook.id}))
    with transaction.atomic():
        use_approval(approval)
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
        WebhookNotFound: Unknown, or another's.
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
    """Send a message again under the same id, with all its attempts, whatever its status.

    Raises:
        WebhookNotFound: The webhook or the delivery is unknown, or another's.
        Conflict: The webhook is disabled.
    """
    principal.require("runs:write")
    hook = _webhook(principal, webhook_id)
    if hook.disabled_at is not None:
        raise Conflict("The webhook is disabled; enable it first.")
    arguments = {"webhookId": hook.id, "deliveryId": delivery_id}
    approval = admit_call(tool_call_request(principal, "replay_webhook_delivery", arguments))
    now = datetime.now(UTC)
    with transaction.atomic():
        use_approval(approval)
        again = _deliveries(hook).filter(id=delivery_id)
        if not again.update(
            status=DeliveryStatus.PENDING,
            attempts=0,
            epoch=F("epoch") + 1,
            next_try_at=now,
        ):
            raise WebhookNotFound(f"This webhook has no delivery {delivery_id[:64]}.")
        _record(principal, "replayed", hook, deliveryId=delivery_id)
    return delivery_object(_deliveries(hook).get(id=delivery_id))


def check_webhook_option(principal: Principal, webhook_id: str | None) -> None:
    """Check the webhook that the options of a submit name.

    Raises:
        InvalidInput: Unknown, another's, or disabled.
    """
    if webhook_id is None:
        return
    named = _visible(principal).filter(id=webhook_id, disabled_at__isnull=True)
    if not named.exists():
        raise InvalidInput(f"options.webhookId: there is no enabled webhook {webhook_id[:64]!r}.")


def limit_webhooks(token: Token, **_signal: Any) -> None:
    """Limit the webhooks that a token created to the users that it may act for now (receiver of
    `token_users_changed`).
    """
    users = users_text(token.acts_for or None)
    Webhook.objects.filter(created_by=f"token:{token.id}").update(users=users)


def _disposable(principal: Principal, webhook_id: str) -> Webhook:
    """Return a webhook that the caller may disable or delete. One that sends confirmations requires
    the scope `confirm`: an agent must not cut people off from them.
    """
    principal.require("runs:write")
    hook = _webhook(principal, webhook_id)
    if hook.tells_confirmations:
        principal.require("confirm")
    return hook


def _visible(principal: Principal) -> QuerySet[Webhook]:
    """Return the webhooks that exist for the caller. One of a local caller reaches this machine's
    network and receives the ends of local runs, so it does not exist for remote ones; one that
    receives what belongs to other users does not exist for a token that is limited to users.
    """
    return Webhook.objects.filter(subscribers_seen_by(principal))


def _webhook(principal: Principal, webhook_id: str) -> Webhook:
    hook = _visible(principal).filter(id=webhook_id).first()
    if hook is None:
        raise WebhookNotFound(f"There is no webhook {webhook_id[:64]}.")
    return hook


def _deliveries(hook: Webhook) -> QuerySet[WebhookDelivery]:
    return WebhookDelivery.objects.filter(webhook_id=hook.id)


def _record(principal: Principal, verb: str, hook: Webhook, **metadata: Any) -> None:
    resource_id = str(metadata.pop("webhook_id", hook.id))  # Django clears the id of a deleted row
    record(
        AuditEvent(
            f"webhook.{verb}",
            principal.id,
            "webhook",
            resource_id,
            hook.tenant_id,
            hook.workspace_id,
            metadata,
        )
    )


def webhook_object(hook: Webhook) -> dict[str, Any]:
    """Return a webhook as the API and the admin show it, without its secret."""
    data: dict[str, Any] = {
        "webhookId": hook.id,
        "name": hook.name,
        "url": hook.url,
        "everyRun": hook.every_run,
        "confirmations": hook.tells_confirmations,
        "questions": hook.tells_questions,
        "confirmationArguments": hook.sends_arguments,
        "enabled": hook.disabled_at is None,
        "createdAt": to_ms(hook.created_at),
    }
    if hook.disabled_at is not None:
        data |= {"disabledAt": to_ms(hook.disabled_at), "reason": hook.disabled_because}
    return data


def delivery_object(row: WebhookDelivery) -> dict[str, Any]:
    """Return a delivery as the API and the admin show it."""
    is_waiting = row.status == DeliveryStatus.PENDING and row.next_try_at != BEING_SENT
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
        "nextTryAt": to_ms(row.next_try_at) if is_waiting else None,
    }
