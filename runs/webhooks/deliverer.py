"""The deliverer: a thread of the scheduler's process that tries what is due, many webhooks at once,
each of them one message at a time. Any number of deliverers is safe.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time

from django.db import Error

from decisions.infra.outages import Outage
from decisions.infra.staleness import Watch
from decisions.infra.threads import in_thread
from runs.webhooks import deliveries
from runs.webhooks.deliveries import DeliveryLease
from runs.webhooks.signing import headers
from runs.webhooks.transport import WebhookResponse, post

AT_ONCE = 16
LOOK_EVERY_S = 1.0
FREE_EVERY_S = 5.0  # looks for what deliverers that are gone left
log = logging.getLogger(__name__)


class Deliverer:
    """Tries deliveries from `start` to `stop`."""

    def __init__(self) -> None:
        self._busy: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._watch, self._free_at = Watch(), 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="webhooks", daemon=True)

    def start(self) -> None:
        """Begin, on a thread of its own."""
        self._thread.start()

    def stop(self, within_s: float = 12.0) -> None:
        """Try nothing new and let what is under way end."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(within_s)

    def _run(self) -> None:
        asyncio.run(self.work())

    async def work(self) -> None:
        """Look for what is due until told to stop; a database that is away is waited for."""
        outage = Outage(log, away="webhooks are put off", back="webhooks are told again")
        while not self._stopping.is_set():
            try:
                found = await self._look()
                outage.is_over()
            except Error as error:
                outage.goes_on(error)
                found = 0
            if not found:
                await asyncio.sleep(LOOK_EVERY_S)
        await asyncio.gather(*self._tasks)

    async def _look(self) -> int:
        if time.monotonic() >= self._free_at:
            self._free_at = time.monotonic() + FREE_EVERY_S
            await in_thread(deliveries.release_lost, self._watch)
        free = AT_ONCE - len(self._tasks)
        if free <= 0:
            return 0
        claims = await in_thread(deliveries.claim_due_deliveries, limit=free, busy=list(self._busy))
        for claim in claims:
            self._busy.add(claim.webhook_id)
            task = asyncio.create_task(self._deliver(claim))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return len(claims)

    async def _deliver(self, claim: DeliveryLease) -> None:
        """Try once and note what came of it; what cannot be noted is tried again later."""
        try:
            answer = await _try(claim)
            if not await in_thread(deliveries.settle, claim, answer):
                log.info("a delivery was settled by somebody else", extra=_about(claim))
        except Error as error:
            log.warning("a delivery cannot be noted: %s", error, extra=_about(claim))
        finally:
            self._busy.discard(claim.webhook_id)


async def _try(claim: DeliveryLease) -> WebhookResponse:
    try:
        signed = headers(
            claim.secret, message_id=claim.delivery_id, timestamp=int(time.time()), body=claim.body
        )
        return await post(claim.url, trust=claim.trust, headers=signed, body=claim.body)
    except Exception:  # a defect of ours counts as a try, or it would be made for ever
        log.exception("a delivery cannot be tried", extra=_about(claim))
        return WebhookResponse(None, "internal error")


def _about(claim: DeliveryLease) -> dict[str, str]:
    return {"deliveryId": claim.delivery_id, "webhookId": claim.webhook_id}
