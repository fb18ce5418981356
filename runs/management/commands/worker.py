"""Run a worker: `manage.py worker [--slots N]`; any number of them at once, on any machine that
reaches the database.
"""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.module_loading import import_string

from decisions.infra.ids import new_id
from runs.queue.eligibility import unknown_template_names
from runs.queue.outbox import worker_queue
from runs.queue.wakeup_dedup import SHARED_QUEUE


class Command(BaseCommand):
    """Become a Celery worker with the threads pool that listens to the shared queue and to one of
    its own.
    """

    help = "Run a worker that carries out runs."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare how many threads it has."""
        parser.add_argument(
            "--threads",
            type=int,
            default=settings.MAX_CONCURRENT_RUNS + 2,
            help="runs at once plus two, so that a doorbell is heard while all slots are taken",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Be the Celery worker until SIGTERM; does not return before."""
        if unknown := unknown_template_names():
            raise CommandError(
                f"CONTINUITY_WORKER_TEMPLATES names {', '.join(unknown)}: no template here."
            )
        worker_id = new_id("wrk_")
        os.environ["CONTINUITY_WORKER_ID"] = worker_id
        # A worker has no urls and no admin to check; `manage.py check` and the tests do that.
        os.environ["CELERY_SKIP_CHECKS"] = "1"
        app: Any = import_string("config.celery.app")  # by name: nobody imports the wiring
        app.worker_main(
            [
                "--quiet",
                "worker",
                "--pool",
                "threads",
                "--concurrency",
                str(options["threads"]),
                "--queues",
                f"{SHARED_QUEUE},{worker_queue(worker_id)}",
                "--hostname",
                f"{worker_id}@%h",
                "--without-gossip",
                "--without-mingle",
                "--loglevel",
                "WARNING",
            ]
        )
