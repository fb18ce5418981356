"""The heartbeat of a web or scheduler process: one statement every BEAT_S shows that it works."""

from __future__ import annotations

import logging
import socket
from datetime import UTC, datetime, timedelta

from django.db.models.functions import Now

from decisions.foundation.infra.ids import new_id
from decisions.foundation.infra.outages import Outage
from decisions.foundation.infra.processes import process_identity
from decisions.foundation.infra.threads import RepeatingThread
from runs.models import ServiceBeat

BEAT_S = 10.0
KEPT = timedelta(days=1)  # rows of ended processes, which `manage.py doctor` reports as lost
_PREFIXES = {"web": "web_", "scheduler": "sch_"}
log = logging.getLogger(__name__)


class ServiceHeartbeat:
    """Writes the heartbeat of this process on a thread of its own, from `start` to `stop`.

    Args:
        kind: web or scheduler.
    """

    def __init__(self, kind: str) -> None:
        self._row = ServiceBeat(
            id=new_id(_PREFIXES[kind]),
            kind=kind,
            process=process_identity(),
            host=socket.gethostname(),
            started_at=datetime.now(UTC),
        )
        outage = Outage(
            log,
            on_failure="the heartbeat of this process cannot be written",
            on_recovery="the heartbeat of this process is written again",
        )
        self._thread = RepeatingThread(
            self.beat,
            name="service-heartbeat",
            every_s=BEAT_S,
            pause_first=False,
            last=self._record_stop,
            outage=outage,
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Record that the process stops, if the database answers soon."""
        self._thread.stop(2.0)

    def beat(self) -> None:
        """Write one heartbeat; insert the row first where there is none.

        Raises:
            django.db.Error: The database does not take it.
        """
        if not ServiceBeat.objects.filter(id=self._row.id).update(beat_at=Now()):
            self._row.beat_at = Now()
            self._row.save(force_insert=True)
            old = Now() - KEPT
            ServiceBeat.objects.filter(kind=self._row.kind, beat_at__lt=old).delete()

    def _record_stop(self) -> None:
        ServiceBeat.objects.filter(id=self._row.id).update(stopped_at=Now())
