"""`manage.py worker`: run a worker. Any number may run, on any machine with the database."""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.utils.module_loading import import_string

from decisions.infra.ids import new_id
from runs.installation.home.prepare import check_pooling
from runs.queue.eligibility import unknown_template_names
from runs.queue.wakeups import SHARED_QUEUE, worker_queue


class Command(BaseCommand):
    """Runs a Celery worker with a thread pool, on the shared queue and on a queue of its own."""

    help = "Run a worker that executes runs."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the Celery worker until SIGTERM."""
        if unknown := unknown_template_names():
            raise CommandError(
                f"CONTINUITY_WORKER_TEMPLATES names unknown templates: {', '.join(unknown)}."
            )
        check_pooling()
        connection.close()  # of this thread, which needs it no more
        worker_id = new_id("wrk_")
        os.environ["CONTINUITY_WORKER_ID"] = worker_id
        # Django's checks of urls and admin do not concern a worker; `manage.py check` runs them.
        os.environ["CELERY_SKIP_CHECKS"] = "1"
        app: Any = import_string("config.celery.app")  # by name: no code may import config
        # Not `app.worker_main`, which imports all commands of Celery and a line editor.
        worker = app.Worker(
            quiet=True,
            pool_cls="threads",
            # Two more than slots, to receive wake-ups while all slots are taken.
            concurrency=settings.MAX_CONCURRENT_RUNS + 2,
            queues=f"{SHARED_QUEUE},{worker_queue(worker_id)}",
            hostname=f"{worker_id}@{socket.gethostname()}",
            without_gossip=True,
            without_mingle=True,
            loglevel="WARNING",
        )
        worker.start()
        sys.exit(worker.exitcode)
