"""Who uses a named session: the one run of it that is running, in the worker that has it open.

There is no row for this lease: `run_session_is_exclusive` allows one running run a session, so it
begins and ends with the run's status, and nothing can be left behind. What has to be sure that no
run starts meanwhile locks the session's row.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import transaction

from runners.models import BrowserSession
from runs.models import Run, RunStatus


def run_using(session_id: str) -> str | None:
    """Return the run that uses a session now."""
    using = Run.objects.filter(session_id=session_id, owns_session=False, status=RunStatus.RUNNING)
    return using.values_list("id", flat=True).first()


def runs_using(session_ids: list[str]) -> dict[str, str]:
    """Return the runs that use these sessions now, by session."""
    using = Run.objects.filter(
        session_id__in=session_ids, owns_session=False, status=RunStatus.RUNNING
    )
    return dict(using.values_list("session_id", "id"))


def acquire_session(run: Run, worker_id: str) -> bool:
    """Take a run's session for this worker, in the transaction of its claim; False: another run
    has it.

    One that was closed is held by nobody: its run starts, and fails for want of it.
    """
    row = BrowserSession.objects.filter(id=run.session_id)
    # The update locks the row: of two claims at once the second sees the first's run.
    row.update(used_at=datetime.now(UTC))
    row.filter(closed_at__isnull=True).update(worker_id=worker_id)
    return run_using(run.session_id) in (None, run.id)


def lock_session(session_id: str) -> BrowserSession | None:
    """Return an open session's row, locked in the caller's transaction: no run starts in it."""
    rows = BrowserSession.objects.select_for_update()
    return rows.filter(id=session_id, closed_at__isnull=True).first()


def release_session(session_id: str, worker_id: str) -> bool:
    """Leave a session that no run uses to whoever restores it; False: a run has it, or it is not
    this worker's.
    """
    with transaction.atomic():
        row = lock_session(session_id)
        if row is None or row.worker_id != worker_id or run_using(session_id) is not None:
            return False
        row.worker_id = None
        row.save(update_fields=["worker_id"])
    return True


def release_session_with_run(session_id: str, worker_id: str) -> None:
    """Leave a session to another worker together with its run, which this one hands back."""
    BrowserSession.objects.filter(id=session_id, worker_id=worker_id).update(worker_id=None)
