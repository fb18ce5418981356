"""`manage.py worker`: run a worker. Any number may run, on any machine with the database."""

from __future__ import annotations

import logging
import os
import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import Error, connection
from django.utils.module_loading import import_string

from decisions.foundation.infra.ids import new_id
from runs.operations.home.prepare import check_pooling
from runs.queue.eligibility import unknown_template_names
from runs.worker.receiver import Receiver
from runs.worker.worker import WorkerProcess

DRAIN_S = 6.0
RETRY_S = 1.0
log = logging.getLogger(__name__)


class Command(BaseCommand):
    """Runs a worker until SIGTERM."""

    help = "Run a worker that executes runs."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Execute runs until SIGTERM or SIGINT."""
        if unknown := unknown_template_names():
            raise CommandError(
                f"CONTINUITY_WORKER_TEMPLATES names unknown templates: {', '.join(unknown)}."
            )
        check_pooling()
        connection.close()  # of this thread, which needs it no more
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        app: Any = import_string("config.celery.app")  # by name: no code may import config
        worker_id = new_id("wrk_")
        receiver = Receiver(app, worker_id)
        worker = WorkerProcess(
            worker_id, renamed=receiver.listen_to, receives_wakeups=lambda: receiver.is_connected
        )
        _open(worker, stopping)
        receiver.start()
        stopping.wait()
        exit_hard_after(DRAIN_S)
        receiver.stop()
        worker.close()


def _open(worker: WorkerProcess, stopping: threading.Event) -> None:
    """Open the worker as soon as the database takes its row."""
    while not stopping.is_set():
        try:
            worker.open()
            worker.look_for_work()  # Redis may have been emptied while no worker was there
            return
        except Error as error:
            log.warning("the worker cannot register yet, and tries again: %s", error)
            stopping.wait(RETRY_S)


def exit_hard_after(seconds: float) -> None:
    """End the process after this many seconds, even if threads still run."""
    timer = threading.Timer(seconds, os._exit, args=(0,))
    timer.daemon = True
    timer.start()
