"""Liveness of the worker: its heartbeat must advance and its wake-up messages must be taken."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import Error, close_old_connections
from django.db.models import Q

from decisions.foundation.infra.staleness import ChangeWatch
from runs.models import Worker
from runs.operations.home import redis_server
from runs.operations.home.state import birth

HEARTBEAT_TIMEOUT_S = 30.0
WAKEUP_TIMEOUT_S = 60.0


class WorkerProbe:
    """Reads the signs of life of a worker process from the database and the private Redis."""

    def is_registered(self, pid: int) -> bool:
        """Return whether the process has its row, so that it sends heartbeats and takes runs."""
        try:
            return self.heartbeat(pid) is not None
        except Error:
            return False

    def heartbeat(self, pid: int) -> tuple[str, int] | None:
        """Return the worker's id and heartbeat counter; None if the process has no row."""
        close_old_connections()
        own = Q(process__endswith=f":{pid}:{birth(pid)}") | Q(process=f"unknown::{pid}:")
        return Worker.objects.filter(own, lost_at__isnull=True).values_list("id", "beat").last()

    def oldest_wakeup(self) -> bytes:
        """Return the oldest wake-up message that no worker of this home has taken; b"" if none, or
        if Redis takes no writes, so that no worker can take it.
        """
        if settings.REDIS_SOCKET is None:
            return b""  # a shared server, from which other machines' workers take messages too
        socket, prefix = Path(settings.REDIS_SOCKET), settings.REDIS_PREFIX
        probe = f"SET {prefix}probe 1 PX 100".encode()
        if not redis_server.send_command(socket, probe).startswith(b"+OK"):
            return b""
        key = f"{prefix}{settings.CELERY_TASK_DEFAULT_QUEUE}"
        reply = redis_server.send_command(socket, f"LINDEX {key} -1".encode())
        return b"" if reply.startswith((b"$-1", b"-")) else reply


class WorkerLiveness:
    """Compares the probe's results over time, on this process's monotonic clock."""

    def __init__(self, probe: WorkerProbe) -> None:
        self._probe = probe
        self._watch = ChangeWatch()

    def unhealthy_reason(self, pid: int) -> str | None:
        """Return why the worker is unhealthy; None if healthy or if the database is unavailable."""
        try:
            heartbeat = self._probe.heartbeat(pid)
        except Error:
            return None
        # A missing row counts as unchanged too: a live worker that lost its row inserts a new one.
        if self._watch.unchanged_s("heartbeat", (pid, heartbeat)) > HEARTBEAT_TIMEOUT_S:
            return f"sent no heartbeat for {HEARTBEAT_TIMEOUT_S:.0f} s"
        wakeup = self._probe.oldest_wakeup()
        if self._watch.unchanged_s("wake-up", (pid, wakeup)) > WAKEUP_TIMEOUT_S and wakeup:
            return f"did not take a wake-up message for {WAKEUP_TIMEOUT_S:.0f} s"
        return None
