"""Whether the worker works: its beat moves, its doorbells are taken (reliability rule 6)."""

from __future__ import annotations

import time
from pathlib import Path

from django.conf import settings
from django.db import Error, close_old_connections
from django.db.models import Q

from runs.installation.home import redis_server
from runs.installation.home.state import birth
from runs.models import Worker

STILL_S = 30.0
UNHEARD_S = 60.0


class WorkerProbe:
    """The signs of life that a worker process leaves in the database and in the private server."""

    def is_registered(self, pid: int) -> bool:
        """Tell whether the process has its row, so that it beats and takes runs."""
        try:
            return self.beat(pid) is not None
        except Error:
            return False

    def beat(self, pid: int) -> tuple[str, int] | None:
        """Return the worker's name and beat counter; None when the process has no row."""
        close_old_connections()
        own = Q(process__endswith=f":{pid}:{birth(pid)}") | Q(process=f"unknown::{pid}:")
        return Worker.objects.filter(own, lost_at__isnull=True).values_list("id", "beat").last()

    def oldest_wakeup(self) -> bytes:
        """Return the message that waits longest for a worker of this home; b"" when none does."""
        if settings.REDIS_SOCKET is None:
            return b""  # a shared server: other machines' workers take from it too
        prefix = settings.CELERY_BROKER_TRANSPORT_OPTIONS["global_keyprefix"]
        key = f"{prefix}{settings.CELERY_TASK_DEFAULT_QUEUE}"
        answer = redis_server.send_command(Path(settings.REDIS_SOCKET), f"LINDEX {key} -1".encode())
        return b"" if answer.startswith((b"$-1", b"-")) else answer


class WorkerLiveness:
    """What the vitals say over time, by this process's own clock."""

    def __init__(self, vitals: WorkerProbe) -> None:
        self._vitals = vitals
        self._beat = _Unchanged()
        self._doorbell = _Unchanged()

    def unhealthy_reason(self, pid: int) -> str | None:
        """Return what is wrong with the worker; None when nothing is, or nothing can be known."""
        try:
            beat = self._vitals.beat(pid)
        except Error:
            return None
        # A row that is gone counts as well: who lost it to the reaper and lives makes a new one.
        if self._beat.seconds((pid, beat)) > STILL_S:
            return f"did not beat for {STILL_S:.0f} s"
        doorbell = self._vitals.oldest_wakeup()
        if self._doorbell.seconds((pid, doorbell)) > UNHEARD_S and doorbell:
            return f"left a doorbell unheard for {UNHEARD_S:.0f} s"
        return None


class _Unchanged:
    """How long a value has stayed the same."""

    def __init__(self) -> None:
        self._value: object = None
        self._since = 0.0

    def seconds(self, value: object) -> float:
        now = time.monotonic()
        if value != self._value:
            self._value, self._since = value, now
        return now - self._since
