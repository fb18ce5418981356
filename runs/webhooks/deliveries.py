"""The rows of deliveries: claim the due ones, settle them, release lost ones.

A claim is one compare-and-set UPDATE that raises the row's epoch and makes the row not due. If the
deliverer that claimed a row dies, another deliverer makes it due again once the row has not changed
for LOST_AFTER_S on that deliverer's monotonic clock. A late write of the first deliverer is refused
because the epoch has moved on.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from artifacts.selectors import artifact_ids_of
from decisions.audit.record import AuditEvent, record
from decisions.foundation.infra.staleness import ChangeWatch
from decisions.foundation.security.sealed_columns import unseal_column
from runs.events.notify import publish_change_after_commit
from runs.models import BEING_SENT, DeliveryStatus, Run, Webhook, WebhookDelivery
from runs.queries.runs import run_object
from runs.webhooks.confirmation_messages import confirmation_message, message
from runs.webhooks.question_messages import question_message

MAX_ATTEMPTS = 8
FIRST_DELAY_S = 15.0  # times four after each attempt: the eighth is 23 hours after the first
JITTER = 0.2
LOST_AFTER_S = 60.0  # an attempt takes 10 s at most, so a deliverer that needs longer has died
GONE = 410
DEAD_AFTER = timedelta(days=5)  # an address where all attempts failed for so long is disabled
DELIVERER = "webhooks"  # the actor in the audit log
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WebhookResponse:
    """The result of an attempt.

    Attributes:
        status_code: of the response; None if there was none.
        error: why there was no response or no success; never contains the response's body.
    """

    status_code: int | None
    error: str = ""

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return self.status_code is not None and 200 <= self.status_code < 300


def claim_due_deliveries(*, limit: int, busy: Collection[str] = ()) -> list[WebhookDelivery]:
    """Claim due deliveries, the longest due first: one per webhook, none of the `busy` ones.

    Returns the rows, each with its webhook and run, and with the epoch and number of this attempt.
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
    claimed: dict[str, WebhookDelivery] = {}
    for row in due[: limit * 4]:
        if len(claimed) < limit and row.webhook_id not in claimed and _claim(row, now):
            claimed[row.webhook_id] = row
    return list(claimed.values())


def _claim(row: WebhookDelivery, now: datetime) -> bool:
    same = WebhookDelivery.objects.filter(id=row.id, epoch=row.epoch, status=DeliveryStatus.PENDING)
    if not same.update(
        epoch=F("epoch") + 1,
        attempts=F("attempts") + 1,
        tried_at=now,
        next_try_at=BEING_SENT,
    ):
        return False
    row.epoch += 1
    row.attempts += 1
    return True


def release_lost(watch: ChangeWatch) -> int:
    """Make claimed deliveries due again that `watch` has seen unchanged for LOST_AFTER_S; return
    how many.
    """
    claimed = WebhookDelivery.objects.filter(status=DeliveryStatus.PENDING, next_try_at=BEING_SENT)
    epochs = dict(claimed.values_list("id", "epoch"))
    watch.start_round()
    released = 0
    for delivery_id, epoch in epochs.items():
        if watch.unchanged_s(delivery_id, epoch) >= LOST_AFTER_S:
            released += claimed.filter(id=delivery_id, epoch=epoch).update(
                next_try_at=datetime.now(UTC), epoch=F("epoch") + 1
            )
    watch.keep_only(set(epochs))
    return released


def secret_and_message(row: WebhookDelivery) -> tuple[str, bytes]:
    """Return the secret that signs a claimed delivery, and its message.

    Raises:
        ValueError, LookupError, ObjectDoesNotExist: One of them cannot be read.
    """
    return unseal_column(row.webhook, "secret").decode(), _body(row)


def _body(row: WebhookDelivery) -> bytes:
    if row.run is not None and row.event_seq is not None:
        return question_message(row.event, row.run, row.event_seq)
    if row.run is not None:
        return run_message(row.event, row.run)
    return confirmation_message(row.event, int(row.decision_id or 0), row.webhook)


def run_message(event: str, run: Run) -> bytes:
    """Return the message about a run that has ended: the run as in the API, without its result,
    which may be large and is read through the API. It is the same at every attempt.
    """
    data = run_object(run, artifact_ids_of([run.id]).get(run.id, []))
    del data["result"]
    return message(event, run.ended_at or run.updated_at, data)


def settle(claimed: WebhookDelivery, response: WebhookResponse) -> bool:
    """Record the result of an attempt; return False if the claim was lost and nothing was recorded.

    A 2xx status completes the delivery. 410 ends it and disables the webhook. After any other
    result the delivery is attempted again, up to MAX_ATTEMPTS in all; if all attempts at the
    webhook's address have failed for DEAD_AFTER, the webhook is disabled.
    """
    now = datetime.now(UTC)
    gone = response.status_code == GONE
    values: dict[str, Any] = {"status_code": response.status_code, "error": response.error[:200]}
    if response.is_success:
        values["status"] = DeliveryStatus.DELIVERED
    elif gone or claimed.attempts >= MAX_ATTEMPTS:
        values["status"] = DeliveryStatus.FAILED
    else:
        values["next_try_at"] = now + timedelta(seconds=retry_delay_s(claimed.attempts))
    with transaction.atomic():
        # The webhook is locked before its deliveries, as in `disable`.
        hook = Webhook.objects.select_for_update(no_key=True).filter(id=claimed.webhook_id).first()
        same = WebhookDelivery.objects.filter(
            id=claimed.id, epoch=claimed.epoch, status=DeliveryStatus.PENDING
        )
        if hook is None or not same.update(**values):
            return False
        publish_change_after_commit("webhookdelivery", claimed.id)
        if "status" in values:
            _record(claimed, values["status"], response)
        if gone:
            disable(claimed.webhook_id, actor=DELIVERER, because="its address answered 410 Gone")
        else:
            _record_health(hook, claimed, response, now)
    return True


def _record_health(
    hook: Webhook, claimed: WebhookDelivery, response: WebhookResponse, now: datetime
) -> None:
    """Record since when the webhook's address fails; after DEAD_AFTER, disable the webhook with the
    last attempt of a delivery, so that one failure after months of silence does not.
    """
    failing_since = None if response.is_success else hook.failing_since or now
    if failing_since != hook.failing_since:
        Webhook.objects.filter(id=hook.id).update(failing_since=failing_since)
    is_dead = failing_since is not None and now - failing_since >= DEAD_AFTER
    if is_dead and claimed.attempts >= MAX_ATTEMPTS:
        last = response.error or f"it answered {response.status_code}"
        because = f"all attempts failed for {DEAD_AFTER.days} days; the last: {last}"
        disable(hook.id, actor=DELIVERER, because=because)


def _record(claimed: WebhookDelivery, status: DeliveryStatus, response: WebhookResponse) -> None:
    hook = Webhook.objects.get(id=claimed.webhook_id)
    details: Mapping[str, Any] = {
        "webhookId": hook.id,
        "attempts": claimed.attempts,
        "statusCode": response.status_code,
        "error": response.error,
    }
    record(
        AuditEvent(
            f"webhook_delivery.{status}",
            DELIVERER,
            "webhook_delivery",
            claimed.id,
            hook.tenant_id,
            hook.workspace_id,
            details,
        )
    )


def disable(webhook_id: str, *, actor: str, because: str) -> None:
    """Disable a webhook and fail its pending deliveries, unless it is disabled already.

    Runs in the caller's transaction or in one of its own.
    """
    now = datetime.now(UTC)
    with transaction.atomic():
        if not Webhook.objects.filter(id=webhook_id, disabled_at__isnull=True).update(
            disabled_at=now, disabled_because=because[:200]
        ):
            return
        WebhookDelivery.objects.filter(webhook_id=webhook_id, status=DeliveryStatus.PENDING).update(
            status=DeliveryStatus.FAILED,
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


def retry_delay_s(attempt: int) -> float:
    """Return the seconds from this attempt to the next, with random jitter so that deliveries that
    failed together are not retried together.
    """
    jitter = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  (not a secret)
    return FIRST_DELAY_S * 4.0 ** (attempt - 1) * jitter
