"""Workers as the database sees them: a row, and claims under its name, without a process."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from runs.lifecycle.lease import Lease
from runs.models import Run, RunStep, Slot, Worker
from runs.queue import leases


def register(worker_id: str, *, process: str = "elsewhere:1:1:1") -> str:
    """Create the row of a live worker whose process cannot be checked from this machine."""
    now = datetime.now(UTC)
    Worker.objects.create(id=worker_id, process=process, host="h", started_at=now)
    return worker_id


def take(worker_id: str) -> Lease | None:
    """Claim the next run in dispatch order."""
    return leases.claim_run(worker_id)


def must_take(worker_id: str) -> Lease:
    """Claim the next run in dispatch order, registering the worker if it is new."""
    if not Worker.objects.filter(id=worker_id).exists():
        register(worker_id)
    held = take(worker_id)
    assert held is not None, "no run was there to claim"
    return held


def taken_slots() -> list[str]:
    """Return the runs that hold a slot."""
    rows = Slot.objects.filter(run_id__isnull=False).order_by("number")
    return [str(run_id) for run_id in rows.values_list("run_id", flat=True)]


def fresh(run_id: str) -> Run:
    """Return the run as it is now in the database."""
    return Run.objects.get(id=run_id)


def error_of(row: Run | RunStep) -> dict[str, Any]:
    """Return the error that a run or a step ended with; it must have one."""
    assert row.error is not None, f"{row.status} without an error"
    error: dict[str, Any] = row.error
    return error
