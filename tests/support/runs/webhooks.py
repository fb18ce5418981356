"""Actions and checks for tests of webhooks."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from decisions.audit.record import is_genuine
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.models import WebhookDelivery
from runs.submission.cancel import cancel_run
from runs.webhooks import deliverer
from runs.webhooks.deliverer import Deliverer
from tests.support.runs.webhook_receiver import Received

Submit = Callable[..., str]


def deliver(seconds: float = 0.5) -> None:
    """Run a deliverer for some time."""

    async def work() -> None:
        running = Deliverer()
        task = asyncio.create_task(running.work())
        await asyncio.sleep(seconds)
        running._stopping.set()
        await task

    before, deliverer.POLL_S = deliverer.POLL_S, 0.05
    try:
        asyncio.run(work())
    finally:
        deliverer.POLL_S = before


def submit_canceled(submit: Submit, principal: Principal, **options: Any) -> str:
    """Submit a run, cancel it, and return its id."""
    run_id = submit(options=options)
    cancel_run(principal=principal, run_id=run_id)
    return run_id


def is_signed(received: Received, secret: str) -> bool:
    """Verify a message's signature as docs/webhooks.md describes for receivers."""
    message, at = received.headers["webhook-id"], received.headers["webhook-timestamp"]
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message}.{at}.".encode() + received.body
    wanted = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return received.headers["webhook-signature"] == f"v1,{wanted}"


def audit_actions() -> list[str]:
    rows = AuditEntry.objects.filter(action__startswith="webhook").order_by("id")
    assert all(is_genuine(row) for row in rows)
    return [row.action for row in rows]


def make_due() -> None:
    WebhookDelivery.objects.update(next_try_at=datetime.now(UTC) - timedelta(seconds=1))
