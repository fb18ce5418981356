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
from runs.webhooks import deliveries
from runs.webhooks.deliveries import DeliveryLease, WebhookResponse
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
        leases = await in_thread(deliveries.claim_due_deliveries, limit=free, busy=list(self._busy))
        for lease in leases:
            self._busy.add(lease.webhook_id)
            task = asyncio.create_task(self._deliver(lease))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return len(leases)

    async def _deliver(self, lease: DeliveryLease) -> None:
        """Attempt the delivery and record the result. Without a record it is attempted again."""
        try:
            response = await _send(lease)
            if not await in_thread(deliveries.settle, lease, response):
                log.info("a delivery was settled by another deliverer", extra=_log_fields(lease))
        except Error as error:
            log.warning(
                "a delivery's result cannot be recorded: %s", error, extra=_log_fields(lease)
            )
        finally:
            self._busy.discard(lease.webhook_id)
            self._has_settled.set()


async def _send(lease: DeliveryLease) -> WebhookResponse:
    try:
        signed = headers(
            lease.secret, message_id=lease.delivery_id, timestamp=int(time.time()), body=lease.body
        )
        return await post(lease.url, trust=lease.trust, headers=signed, body=lease.body)
    except Exception:  # a defect of ours counts as an attempt, else it would be retried for ever
        log.exception("a delivery failed with an internal error", extra=_log_fields(lease))
        return WebhookResponse(None, "internal error")


def _log_fields(lease: DeliveryLease) -> dict[str, str]:
    return {"deliveryId": lease.delivery_id, "webhookId": lease.webhook_id}
