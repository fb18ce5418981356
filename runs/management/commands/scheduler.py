"""Run the scheduler: `manage.py scheduler`; any number of them at once is safe."""

from __future__ import annotations

import signal
from typing import Any

from django.core.management.base import BaseCommand

from decisions.audit.sealer import Sealer
from runs.scheduler.jobs import Scheduler
from runs.webhooks.deliverer import Deliverer


class Command(BaseCommand):
    """Ring again, end lost leases, hide and expire, deliver webhooks, seal the audit log, until
    SIGTERM or Ctrl-C.
    """

    help = "Run the scheduler (lost leases, unheard doorbells, expiry, webhooks, audit seals)."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Work until told to stop."""
        scheduler = Scheduler()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: scheduler.stopping.set())
        deliverer, sealer = Deliverer(), Sealer()
        deliverer.start()
        sealer.start()
        scheduler.run()
        deliverer.stop()
        sealer.stop()
