"""Deliveries as rows: due, claimed by compare-and-set, settled, replayed.

A claim raises the row's epoch and is due no more. What a deliverer that was killed leaves is made
due again by whoever sees it unchanged for long enough on its own clock, which no wall clock's jump
moves; what a late one writes is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction
from django.db.models import F

from artifacts.selectors import artifact_ids_of
from decisions.audit.record import AuditEvent, record
from decisions.infra.staleness import ChangeWatch
from decisions.security.keys import unseal
from runners.trust import TrustLevel
from runs.models import BEING_SENT, DeliveryStatus, Run, Webhook, WebhookDelivery
from runs.queries.runs import run_object
from runs.webhooks.backoff import retry_delay_s
from runs.webhooks.confirmation_messages import confirmation_message
from runs.webhooks.transport import WebhookResponse

MAX_ATTEMPTS = 8
LOST_AFTER_S = 60.0  # a try takes 10 s at most; one that is not settled by then was lost
GONE = 410
DELIVERER = "webhooks"  # who settles, in the audit log
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeliveryLease:
    """A delivery that is ours to try, with all that the try needs."""

    delivery_id: str
    webhook_id: str
    epoch: int
    attempt: int
    url: str
    trust: TrustLevel
    secret: str
    body: bytes


def claim_due_deliveries(*, limit: int, busy: Collection[str] = ()) -> list[DeliveryLease]:
    """Claim deliveries that are due, the longest due first; none of the `busy` webhooks, and of
    the others one each.
    """
    now = datetime.now(UTC)
    due = (
        WebhookDelivery.objects.filter(
            status=DeliveryStatus.PENDING, next_try_at__lte=now, webhook__disabled_at__isnull=True
        )
        .exclude(webhook_id__in=list(busy))
        .select_related("webhook", "run")
        .order_by("next_try_at", "id")
    )
    claims: dict[str, DeliveryLease | None] = {}
    for row in due[: limit * 4]:
        if len(claims) < limit and row.webhook_id not in claims and _take(row, now):
            claims[row.webhook_id] = _readable(row)
    return [claim for claim in claims.values() if claim is not None]


def _readable(row: WebhookDelivery) -> DeliveryLease | None:
    """Return the claim of a row, or settle the try of one that cannot be made into a message: it
    must not keep others from theirs.
    """
    try:
        return _claim_of(row)
    except (ValueError, LookupError, ObjectDoesNotExist):
        log.exception("a delivery cannot be made", extra={"deliveryId": row.id})
        settle(_about(row), WebhookResponse(None, "the webhook's secret or message cannot be read"))
        return None


def _take(row: WebhookDelivery, now: datetime) -> bool:
    same = WebhookDelivery.objects.filter(id=row.id, epoch=row.epoch, status=DeliveryStatus.PENDING)
    return bool(
        same.update(
            epoch=F("epoch") + 1,
            attempts=F("attempts") + 1,
            tried_at=now,
            next_try_at=BEING_SENT,
        )
    )


def release_lost(watch: ChangeWatch) -> int:
    """Make due what somebody claimed and did not settle for LOST_AFTER_S, as `watch` saw it; return
    how many.
    """
    claimed = WebhookDelivery.objects.filter(status=DeliveryStatus.PENDING, next_try_at=BEING_SENT)
    seen = dict(claimed.values_list("id", "epoch"))
    watch.start_round()
    freed = 0
    for delivery_id, epoch in seen.items():
        if watch.unchanged_s(delivery_id, epoch) >= LOST_AFTER_S:
            freed += claimed.filter(id=delivery_id, epoch=epoch).update(
                next_try_at=datetime.now(UTC), epoch=F("epoch") + 1
            )
    watch.keep_only(set(seen))
    return freed


def _claim_of(row: WebhookDelivery) -> DeliveryLease:
    secret = unseal(bytes(row.webhook.secret)).decode()
    return replace(_about(row), secret=secret, body=_body(row))


def _about(row: WebhookDelivery) -> DeliveryLease:
    hook = row.webhook
    return DeliveryLease(
        delivery_id=row.id,
        webhook_id=hook.id,
        epoch=row.epoch + 1,
        attempt=row.attempts + 1,
        url=hook.url,
        trust="local" if hook.trust == "local" else "remote",
        secret="",
        body=b"",
    )


def _body(row: WebhookDelivery) -> bytes:
    if row.run is not None:
        return run_message(row.event, row.run)
    return confirmation_message(row.event, int(row.decision_id or 0))


def run_message(event: str, run: Run) -> bytes:
    """Return the message: the run as the API shows it, without its result, which may be large and
    is the API's to give out. A run that has ended does not change, so neither does the message.
    """
    shown = run_object(run, artifact_ids_of([run.id]).get(run.id, []))
    del shown["result"]
    at = (run.ended_at or run.updated_at).astimezone(UTC).isoformat(timespec="milliseconds")
    return orjson.dumps({"type": event, "timestamp": at.replace("+00:00", "Z"), "data": shown})


def settle(claim: DeliveryLease, answer: WebhookResponse) -> bool:
    """Note what came of a try; tell whether the claim was still ours.

    2xx is the end of it; 410 ends the webhook too; everything else is tried again, MAX_TRIES times
    in all.
    """
    now = datetime.now(UTC)
    gone = answer.status_code == GONE
    values: dict[str, Any] = {"status_code": answer.status_code, "error": answer.error[:200]}
    if answer.is_success:
        values |= {"status": DeliveryStatus.DELIVERED, "settled_at": now}
    elif gone or claim.attempt >= MAX_ATTEMPTS:
        values |= {"status": DeliveryStatus.FAILED, "settled_at": now}
    else:
        values["next_try_at"] = now + timedelta(seconds=retry_delay_s(claim.attempt))
    with transaction.atomic():
        ours = WebhookDelivery.objects.filter(
            id=claim.delivery_id, epoch=claim.epoch, status=DeliveryStatus.PENDING
        )
        if not ours.update(**values):
            return False
        if "status" in values:
            _record(claim, values["status"], answer)
        if gone:
            disable(claim.webhook_id, actor=DELIVERER, because="its address answered 410 Gone")
    return True


def _record(claim: DeliveryLease, status: DeliveryStatus, answer: WebhookResponse) -> None:
    hook = Webhook.objects.get(id=claim.webhook_id)
    told: Mapping[str, Any] = {
        "webhookId": hook.id,
        "attempts": claim.attempt,
        "statusCode": answer.status_code,
        "error": answer.error,
    }
    record(
        AuditEvent(
            f"webhook_delivery.{status}",
            DELIVERER,
            "webhook_delivery",
            claim.delivery_id,
            hook.tenant_id,
            hook.workspace_id,
            told,
        )
    )


def disable(webhook_id: str, *, actor: str, because: str) -> bool:
    """Tell a webhook nothing from now on, and give up what is under way to it; False: it was
    disabled before. In the caller's transaction or one of its own.
    """
    now = datetime.now(UTC)
    with transaction.atomic():
        if not Webhook.objects.filter(id=webhook_id, disabled_at__isnull=True).update(
            disabled_at=now, disabled_because=because[:200]
        ):
            return False
        WebhookDelivery.objects.filter(webhook_id=webhook_id, status=DeliveryStatus.PENDING).update(
            status=DeliveryStatus.FAILED,
            settled_at=now,
            epoch=F("epoch") + 1,
            error="the webhook was disabled",
        )
        hook = Webhook.objects.get(id=webhook_id)
        record(
            AuditEvent(
                "webhook.disabled",
                actor,
                "webhook",
                hook.id,
                hook.tenant_id,
                hook.workspace_id,
                {"because": because},
            )
        )
    return True
