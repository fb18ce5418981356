"""The deliverer: a thread of the scheduler's process that sends due deliveries, to many webhooks at
once and to each of them one at a time. Any number of deliverers may run.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from contextlib import suppress

from django.db import Error

from decisions.foundation.infra.outages import Outage
from decisions.foundation.infra.staleness import ChangeWatch
from decisions.foundation.infra.threads import in_thread
from decisions.identity.principals import as_trust
from runs.models import WebhookDelivery
from runs.webhooks import deliveries
from runs.webhooks.deliveries import WebhookResponse
from runs.webhooks.signing import headers
from runs.webhooks.transport import post

AT_ONCE = 16
POLL_S = 1.0
RELEASE_EVERY_S = 15.0  # interval at which deliveries of lost deliverers are released
STOP_S = 12.0  # how long `stop` waits
log = logging.getLogger(__name__)


class Deliverer:
    """Sends deliveries from `start` to `stop`."""

    def __init__(self) -> None:
        self._busy: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._watch, self._release_at = ChangeWatch(), 0.0
        self._has_settled = asyncio.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="webhooks", daemon=True)

    def start(self) -> None:
        """Start the deliverer's thread."""
        self._thread.start()

    def stop(self) -> None:
        """Claim no more deliveries, and wait for those in flight."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(STOP_S)

    def _run(self) -> None:
        asyncio.run(self.work())

    async def work(self) -> None:
        """Send due deliveries until `stop`; while the database is unavailable, keep retrying."""
        outage = Outage(
            log,
            on_failure="webhooks are not delivered while the database is unavailable",
            on_recovery="webhooks are delivered again",
        )
        while not self._stopping.is_set():
            try:
                claimed = await self._claim()
                outage.recovered()
            except Error as error:
                outage.failed(error)
                claimed = 0
            except Exception:  # whatever it is: later deliveries have to be sent
                log.exception("webhook deliveries could not be claimed, retrying")
                claimed = 0
            if not claimed:
                await self._pause()
        await asyncio.gather(*self._tasks)

    async def _pause(self) -> None:
        """Wait POLL_S, or until an attempt has ended: its webhook may have further messages."""
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_S):
                await self._has_settled.wait()
        self._has_settled.clear()

    async def _claim(self) -> int:
        if time.monotonic() >= self._release_at:
            self._release_at = time.monotonic() + RELEASE_EVERY_S
            await in_thread(deliveries.release_lost, self._watch)
        free = AT_ONCE - len(self._tasks)
        if free <= 0:
            return 0
        claimed = await in_thread(
            deliveries.claim_due_deliveries, limit=free, busy=list(self._busy)
        )
        for row in claimed:
            self._busy.add(row.webhook_id)
            task = asyncio.create_task(self._deliver(row))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return len(claimed)

    async def _deliver(self, row: WebhookDelivery) -> None:
        """Attempt the delivery and record the result. Without a record it is attempted again."""
        fields = {"deliveryId": row.id, "webhookId": row.webhook_id}
        try:
            if not await in_thread(deliveries.settle, row, await _send(row, fields)):
                log.info("a delivery was settled by another deliverer", extra=fields)
        except Error as error:
            log.warning("a delivery's attempt cannot be recorded: %s", error, extra=fields)
        finally:
            self._busy.discard(row.webhook_id)
            self._has_settled.set()


async def _send(row: WebhookDelivery, fields: dict[str, str]) -> WebhookResponse:
    """Attempt a delivery.

    Raises:
        Error: The database is unavailable.
    """
    problem = "the webhook's secret or message cannot be read"
    try:
        secret, body = await in_thread(deliveries.secret_and_message, row)
        problem = "internal error"
        signed = headers(secret, message_id=row.id, timestamp=int(time.time()), body=body)
        trust = as_trust(row.webhook.trust)
        return await post(row.webhook.url, trust=trust, headers=signed, body=body)
    except Error:
        raise
    except Exception:  # a defect of ours counts as an attempt, else it would be retried for ever
        log.exception("a delivery failed: %s", problem, extra=fields)
        return WebhookResponse(None, problem)
