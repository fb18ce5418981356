"""Webhook messages about waiting confirmations, with a link to decide them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from decisions.authorization.confirmation_links import confirmation_link
from decisions.authorization.decision_pages import visible_arguments
from decisions.authorization.request_lines import request_line
from decisions.authorization.sealed_arguments import (
    CannotBeShown,
    arguments_size,
    readable_arguments,
    shown_digest,
)
from decisions.foundation.infra.clock import to_ms
from decisions.identity.authority import gets_links, subscribers_of
from decisions.models import Confirmation, Decision, Delivery
from runs.models import Run, Webhook, WebhookDelivery, delivery_id

WAITING = "confirmation.waiting"


def create_confirmation_deliveries(confirmation: Confirmation, **_signal: Any) -> None:
    """Insert a delivery for every webhook that receives confirmations (receiver of
    `confirmation_opened`, in the transaction that creates the confirmation). A confirmation whose
    token goes through the agent's host gets none.
    """
    if confirmation.delivery != Delivery.OUT_OF_BAND:
        return
    now, decision = datetime.now(UTC), confirmation.decision
    is_sent_to, params = subscribers_of(decision)
    hooks = Webhook.objects.raw(
        "SELECT w.id FROM runs_webhook w"  # noqa: S608  (the condition has parameters alone)
        f" WHERE w.tells_confirmations AND w.disabled_at IS NULL AND {is_sent_to}",
        params,
    )
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(
            id=delivery_id(confirmation.id, hook.id),
            webhook_id=hook.id,
            decision_id=decision.pk,
            event=WAITING,
            next_try_at=now,
            created_at=now,
        )
        for hook in hooks
    )


def confirmation_message(event: str, decision_id: int, webhook: Webhook) -> bytes:
    """Return the message. Its link is created here and not stored: anyone with it can decide.

    Only a webhook that a person created in the admin gets the link: no credential confirms what it
    requested, or what it wrote in an answer, a message or a file. One that sends arguments gets the
    exact ones for programs, the same with every character visible for people, and the digest that
    an answer names; others get the arguments' digest and size alone.
    """
    confirmation = Confirmation.objects.select_related("decision").get(decision_id=decision_id)
    decision = confirmation.decision
    data = {
        "decisionId": decision.pk,
        "confirmationId": confirmation.id,
        "kind": decision.kind,
        "tool": decision.tool,
        "targetId": decision.target_id,
        "line": request_line(decision),
        "argumentsDigest": decision.subject_digest,
        "argumentsSize": arguments_size(decision),
        **(_arguments(decision) if webhook.sends_arguments else {}),
        "rule": decision.rule,
        "reason": decision.reason,
        "askedBy": decision.principal_id,
        "userId": decision.user_id,
        "runId": decision.run_id,
        **_run_columns(decision),
        "step": decision.step_index,
        "expiresAt": to_ms(confirmation.expires_at),
        "link": confirmation_link(confirmation) if gets_links(webhook.created_by) else None,
    }
    return message(event, confirmation.created_at, data)


def _run_columns(decision: Decision) -> dict[str, Any]:
    """Return what the run of the call is about; nothing for a call outside of a run."""
    run = Run.objects.filter(id=decision.run_id).values("subject", "labels").first()
    return {} if run is None else {"runSubject": run["subject"], "runLabels": run["labels"] or {}}


def message(event: str, at: datetime, data: Mapping[str, Any]) -> bytes:
    """Return a webhook's message as JSON."""
    timestamp = at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return orjson.dumps({"type": event, "timestamp": timestamp, "data": data})


def _arguments(decision: Decision) -> dict[str, Any]:
    try:
        return {
            "arguments": readable_arguments(decision),
            "argumentsShown": visible_arguments(decision),
            "shownDigest": shown_digest(decision),
        }
    except CannotBeShown as hidden:
        return {"arguments": None, "argumentsShown": None, "problem": hidden.reason}
