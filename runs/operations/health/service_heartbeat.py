"""The heartbeat of a web or scheduler process: one statement every BEAT_S shows that it works."""

from __future__ import annotations

import logging
import socket
import threading
from datetime import UTC, datetime, timedelta

from django.db import Error, close_old_connections, connection
from django.db.models.functions import Now

from decisions.foundation.infra.ids import new_id
from decisions.foundation.infra.outages import Outage
from decisions.foundation.infra.processes import process_identity
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
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="service-heartbeat", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Record that the process stops, if the database answers soon."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

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

    def _run(self) -> None:
        outage = Outage(
            log,
            on_failure="the heartbeat of this process cannot be written",
            on_recovery="the heartbeat of this process is written again",
        )
        is_stopping = False
        while not is_stopping:
            close_old_connections()
            try:
                self.beat()
                outage.recovered()
            except Error as error:
                outage.failed(error)
            is_stopping = self._stopping.wait(BEAT_S)
        try:
            ServiceBeat.objects.filter(id=self._row.id).update(stopped_at=Now())
        except Error as error:
            log.info("the stop of this process is not recorded: %s", error)
        connection.close()
