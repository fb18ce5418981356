"""Numbers that show whether the installation works, over all workspaces: live workers, runs by
status, slots, waiting confirmations, due webhooks and unsealed audit rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Count, Min, Q

from decisions.audit.backlog import unsealed_rows
from decisions.foundation.infra.processes import has_ended
from decisions.foundation.infra.staleness import ChangeWatch
from decisions.foundation.presentation.formatting import duration
from decisions.foundation.presentation.visible_text import visible
from decisions.models import Confirmation, ConfirmationStatus
from decisions.models.audit_triggers import changed_triggers
from runners.paired_browser.pairing.selectors import connected_browsers
from runs.models import Slot, WebhookDelivery, Worker
from runs.models.webhooks import DeliveryStatus
from runs.operations.health.processes import list_processes
from runs.queries.totals import totals_by_status

# Waiting runs beyond this number are not counted, so that a scrape reads only a part of the index.
MAX_COUNTED = 10_000
_QUEUE = """
    WITH RECURSIVE waiting (workspace_id) AS (  -- the workspaces with a waiting run
        SELECT MIN(workspace_id) FROM runs_run
        WHERE ready AND lease_owner IS NULL AND status IN ('queued', 'running')
        UNION ALL
        SELECT (SELECT MIN(workspace_id) FROM runs_run
                WHERE ready AND lease_owner IS NULL AND status IN ('queued', 'running')
                  AND workspace_id > waiting.workspace_id)
        FROM waiting WHERE waiting.workspace_id IS NOT NULL)
    SELECT
        (SELECT COUNT(*) FROM (
            SELECT 1 FROM runs_run
            WHERE ready AND lease_owner IS NULL AND status IN ('queued', 'running')
            LIMIT %(most)s) runs),
        (SELECT MIN((
            SELECT created_at FROM runs_run
            WHERE ready AND lease_owner IS NULL AND status IN ('queued', 'running')
              AND status = 'queued' AND workspace_id = waiting.workspace_id
            ORDER BY created_at LIMIT 1)) FROM waiting)"""


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many items wait, and for how long the oldest has waited; 0 if none waits."""

    number: int
    oldest_s: float


@dataclass(frozen=True, slots=True)
class InstallationStatus:
    """Numbers of the whole installation at one moment.

    Attributes:
        runs: by template and status: how many the API shows, and how many ever had that status.
        queue: runs that a worker could claim if a slot were free; the oldest that never started.
        deliveries: due deliveries of webhooks.
        changed_triggers: differences between the triggers of the audit tables and Continuity's.
        browsers_connected: paired browsers that are connected now.
        processes: how many, by kind and state.
    """

    runs: Mapping[tuple[str, str], tuple[int, int]]
    queue: Backlog
    slots_taken: int
    slots: int
    workers: Sequence[str]
    confirmations: Backlog
    deliveries: Backlog
    unsealed: Backlog
    changed_triggers: int
    browsers_connected: int
    processes: Mapping[tuple[str, str], int]


_heartbeats = ChangeWatch()


def list_live_workers() -> list[str]:
    """Return the workers whose heartbeat advanced within the last LEASE_LOST_S, or was first seen
    within that time, by this process's monotonic clock.
    """
    rows = Worker.objects.filter(lost_at__isnull=True).values_list("id", "beat", "process")
    beats = {worker_id: beat for worker_id, beat, process in rows if not has_ended(process)}
    _heartbeats.keep_only(beats)
    return [
        worker_id
        for worker_id, beat in beats.items()
        if _heartbeats.unchanged_s(worker_id, beat) < settings.LEASE_LOST_S
    ]


def count_live_workers() -> int:
    """Return how many worker processes are live; one query."""
    return len(list_live_workers())


def describe_audit_fault() -> str | None:
    """Return what is wrong if the triggers of the audit log were changed, or audit rows have had no
    seal for over a minute; else None.
    """
    if changes := changed_triggers():
        return (
            f"The triggers of the audit log were changed ({visible(changes[0], 500)}). See"
            " `manage.py verify_audit`."
        )
    unsealed = unsealed_rows(MAX_COUNTED)
    if not unsealed.is_late:
        return None
    rows = "1 audit row has" if unsealed.number == 1 else f"{unsealed.number} audit rows have"
    return (
        f"{rows} no seal, the oldest for {duration(unsealed.oldest_s * 1000)}. Start a scheduler:"
        " `manage.py scheduler`. If one runs, see `manage.py verify_audit`."
    )


def read_installation_status() -> InstallationStatus:
    """Return the numbers behind /metrics.

    Makes thirteen queries. None reads more of an index than the waiting and running rows, and the
    audit rows of the last minutes.
    """
    now = datetime.now(UTC)
    slots = Slot.objects.aggregate(
        all=Count("number"), taken=Count("number", Q(run_id__isnull=False))
    )
    waiting = Confirmation.objects.filter(status=ConfirmationStatus.WAITING, expires_at__gt=now)
    due = WebhookDelivery.objects.filter(status=DeliveryStatus.PENDING, next_try_at__lte=now)
    unsealed = unsealed_rows(MAX_COUNTED)
    return InstallationStatus(
        runs=totals_by_status(),
        queue=_queue(now),
        slots_taken=slots["taken"],
        slots=slots["all"],
        workers=list_live_workers(),
        confirmations=_backlog(waiting, "created_at", now),
        deliveries=_backlog(due, "next_try_at", now),
        unsealed=Backlog(unsealed.number, unsealed.oldest_s),
        changed_triggers=len(changed_triggers()),
        browsers_connected=connected_browsers().count(),
        processes=Counter((one.kind, str(one.state)) for one in list_processes()),
    )


def backlog_of(number: int, oldest: datetime | None, now: datetime) -> Backlog:
    """Return a backlog from the number of items and the time of the oldest."""
    return Backlog(number, max(0.0, (now - oldest).total_seconds()) if oldest else 0.0)


def _backlog(rows: Any, since: str, now: datetime) -> Backlog:
    found = rows.order_by().aggregate(number=Count("pk"), oldest=Min(since))
    return backlog_of(found["number"], found["oldest"], now)


def _queue(now: datetime) -> Backlog:
    with connection.cursor() as cursor:
        cursor.execute(_QUEUE, {"most": MAX_COUNTED})
        number, oldest = cursor.fetchone()
    if isinstance(oldest, str):  # SQLite has no datetime type
        oldest = datetime.fromisoformat(oldest).replace(tzinfo=UTC)
    return backlog_of(number, oldest, now)
