"""The Celery application, which carries wake-ups for workers; the queue of runs is the database."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.fixups.django import DjangoWorkerFixup  # type: ignore[attr-defined]
from kombu.transport.redis import Channel

from runs.queue import wakeups

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")


def _keep_usable_connections(self: DjangoWorkerFixup, **kwargs: Any) -> None:
    """Close only connections that Django considers unusable or obsolete.

    Celery closes every connection before and after every task, despite CONN_MAX_AGE; keeping them
    doubles the throughput of durable runs. With CONN_HEALTH_CHECKS Django replaces a connection
    that a restart of PostgreSQL broke.
    """
    for connection in self._db.connections.all(initialized_only=True):
        connection.close_if_unusable_or_obsolete()


DjangoWorkerFixup.close_database = _keep_usable_connections
# Do not return unprocessed wake-ups to the broker: workers look for runs without them too, and
# returning them to a broker that is down crashes the worker.
Channel.do_restore = False

app = Celery("continuity")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["runs"])


def notify_workers(queue: str, run_id: str) -> None:
    """Send one wake-up message, unless the queue has an undelivered one.

    Raises what the broker's client raises.
    """
    if not wakeups.should_send(queue):
        return
    try:
        app.send_task("runs.work", kwargs={"run_id": run_id}, queue=queue, retry=False)
    except BaseException:
        wakeups.mark_received()  # nothing was sent: later wake-ups must not be left out
        raise
