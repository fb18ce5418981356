"""Which processes run, hang, are lost or stopped: the one answer that `manage.py status`, `doctor`,
the console and the metrics give.

The age of a heartbeat is measured by the database's clock alone. It decides nothing: leases end by
counters (`runs.queue.lease_expiry`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from django.db.models import DurationField, ExpressionWrapper, F, Q
from django.db.models.functions import Now

from decisions.foundation.infra.processes import has_ended, runs_here
from runs.models import ServiceBeat, Worker

HUNG_AFTER_S = 25.0  # two heartbeats of an idle process are missing
SHOWN_AFTER_END = timedelta(hours=1)
# The age of the last heartbeat, for `annotate(silent=SILENT)`.
SILENT = ExpressionWrapper(Now() - F("beat_at"), output_field=DurationField())


class ProcessState(StrEnum):
    """The state of a process.

    Attributes:
        RUNNING: its heartbeat is fresh.
        HUNG: it exists, or may exist on another machine, and sends no heartbeat.
        LOST: it ended without saying so, or its leases were ended because it was silent.
        STOPPED: it was stopped and reported that.
    """

    RUNNING = "running"
    HUNG = "hung"
    LOST = "lost"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """A process as people see it; `silent_s` is the age of its last heartbeat."""

    id: str
    kind: str
    host: str
    process: str
    state: ProcessState
    silent_s: float

    @property
    def pid(self) -> int:
        """Its process id, in the pid namespace of its machine or container."""
        parts = self.process.split(":")
        return int(parts[2]) if len(parts) > 2 and parts[2].isdigit() else 0

    @property
    def words(self) -> str:
        """The state, with the age of the heartbeat where that is the reason."""
        if self.state in (ProcessState.RUNNING, ProcessState.STOPPED):
            return str(self.state)
        return f"{self.state}: no heartbeat for {self.silent_s:.0f} s"


def list_processes() -> list[ProcessStatus]:
    """Return the workers, schedulers and web processes that run, hang, or ended within the last
    hour, the newest row of each process; two queries.
    """
    recent = Q(beat_at__gt=Now() - SHOWN_AFTER_END)
    workers = Worker.objects.filter(Q(lost_at__isnull=True) | recent).annotate(silent=SILENT)
    services = ServiceBeat.objects.filter(recent).annotate(silent=SILENT)
    newest: dict[str, ProcessStatus] = {}
    rows: list[Worker | ServiceBeat] = [*workers.order_by("started_at", "id")]
    rows += services.order_by("started_at", "id")
    for row in rows:
        newest[row.process] = status_of(row)
    return sorted(newest.values(), key=lambda one: (one.kind, one.id))


def status_of(row: Worker | ServiceBeat) -> ProcessStatus:
    """Return the status of a process, from its row with the annotation `silent`."""
    silent: timedelta | None = getattr(row, "silent")  # noqa: B009  (an annotation)
    silent_s = max(0.0, silent.total_seconds()) if silent is not None else 0.0
    is_lost = isinstance(row, Worker) and row.lost_at is not None
    kind = "worker" if isinstance(row, Worker) else row.kind
    state = _state_of(row, is_lost=is_lost, silent_s=silent_s)
    return ProcessStatus(row.id, kind, row.host, row.process, state, silent_s)


def _state_of(row: Worker | ServiceBeat, *, is_lost: bool, silent_s: float) -> ProcessState:
    if row.stopped_at is not None:
        return ProcessState.STOPPED
    if has_ended(row.process):
        return ProcessState.LOST
    if is_lost:
        return ProcessState.HUNG if runs_here(row.process) else ProcessState.LOST
    return ProcessState.HUNG if silent_s > HUNG_AFTER_S else ProcessState.RUNNING
