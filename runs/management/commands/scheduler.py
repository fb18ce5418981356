"""`manage.py scheduler`: run the scheduler. Any number of schedulers may run."""

from __future__ import annotations

import signal
from typing import Any

from django.core.management.base import BaseCommand

from decisions.audit.sealer import Sealer
from runs.operations.health.service_heartbeat import ServiceHeartbeat
from runs.operations.home.prepare import check_pooling
from runs.scheduler.jobs import Scheduler
from runs.scheduler.waiting_emails import Mailer
from runs.webhooks.deliverer import Deliverer


class Command(BaseCommand):
    """Expires leases and old rows, redispatches wake-ups, delivers webhooks, seals audit rows."""

    help = "Run the scheduler (lost leases, wake-ups, retention, webhooks, audit seals)."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until a signal."""
        check_pooling()
        scheduler = Scheduler()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: scheduler.stopping.set())
        deliverer, sealer, mailer = Deliverer(), Sealer(), Mailer()
        heartbeat = ServiceHeartbeat("scheduler")
        deliverer.start()
        sealer.start()
        mailer.start()
        heartbeat.start()
        scheduler.run()
        deliverer.stop()
        sealer.stop()
        mailer.stop()
        heartbeat.stop()
