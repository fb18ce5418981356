"""The Celery application: a doorbell that says "there is work" (mechanisms 1); the work itself is
in the database.
"""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.fixups.django import DjangoWorkerFixup  # type: ignore[attr-defined]
from kombu.transport.redis import Channel

from runs.queue import wakeup_dedup

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")


def _keep_usable_connections(self: DjangoWorkerFixup, **kwargs: Any) -> None:
    """Close only what Django itself calls unusable or obsolete.

    Celery closes every connection around every task, whatever CONN_MAX_AGE says; keeping them
    doubles the throughput of durable runs. CONN_HEALTH_CHECKS makes the kept ones survive a restart
    of PostgreSQL.
    """
    for connection in self._db.connections.all(initialized_only=True):
        connection.close_if_unusable_or_obsolete()


DjangoWorkerFixup.close_database = _keep_usable_connections
# What was heard and not begun need not notify_workers again: the sweeper sees to that. Giving it back to a
# broker that is gone fails in a way that ends the worker.
Channel.do_restore = False

app = Celery("continuity")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["runs"])


def notify_workers(queue: str, run_id: str) -> None:
    """Ring once, unless a bell is under way already; raises what the broker
    raises, and the sweeper rings again for what was not heard.
    """
    if not wakeup_dedup.should_send(queue):
        return
    try:
        app.send_task("runs.work", kwargs={"run_id": run_id}, queue=queue, retry=False)
    except BaseException:
        wakeup_dedup.mark_received()  # or others would count on it
        raise
