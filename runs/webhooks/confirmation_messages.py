"""Telling people what waits for them: a message with a link that shows it, and decides it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson

from decisions.authorization.confirmation_links import link_to_confirm
from decisions.infra.clock import to_ms
from decisions.models import Confirmation, Delivery
from runs.models import Webhook, WebhookDelivery, delivery_id

WAITING = "confirmation.waiting"


def create_confirmation_deliveries(confirmation: Confirmation, **_signal: Any) -> None:
    """Write a delivery for every webhook that is told what waits, in the transaction that asks
    (receiver of `confirmation_opened`). Words whose token goes through the agent's host need none.
    """
    if confirmation.delivery != Delivery.OUT_OF_BAND:
        return
    now, decision = datetime.now(UTC), confirmation.decision
    hooks = Webhook.objects.filter(
        workspace_id=decision.workspace_id, tells_confirmations=True, disabled_at__isnull=True
    )
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(
            id=delivery_id(confirmation.id, hook_id),
            webhook_id=hook_id,
            decision_id=decision.pk,
            event=WAITING,
            next_try_at=now,
            created_at=now,
        )
        for hook_id in hooks.values_list("id", flat=True)
    )


def confirmation_message(event: str, decision_id: int) -> bytes:
    """Return the message. Its link is made here and kept nowhere: whoever has it decides."""
    confirmation = Confirmation.objects.select_related("decision").get(decision_id=decision_id)
    decision = confirmation.decision
    at = confirmation.created_at.astimezone(UTC).isoformat(timespec="milliseconds")
    told = {
        "decisionId": decision.pk,
        "confirmationId": confirmation.id,
        "kind": decision.kind,
        "tool": decision.tool,
        "targetId": decision.target_id,
        "arguments": decision.arguments,
        "rule": decision.rule,
        "reason": decision.reason,
        "askedBy": decision.principal_id,
        "userId": decision.user_id,
        "runId": decision.run_id,
        "step": decision.step_index,
        "expiresAt": to_ms(confirmation.expires_at),
        "link": link_to_confirm(confirmation),
    }
    return orjson.dumps({"type": event, "timestamp": at.replace("+00:00", "Z"), "data": told})
