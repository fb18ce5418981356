"""The lease of a named session: one running run, in the worker that has the session open.

The lease has no row of its own: the constraint `run_session_is_exclusive` allows one running run
for each session, so the lease starts and ends with the run's status and cannot be left behind. Code
that must exclude the start of a run locks the session's row.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import transaction

from runners.models import BrowserSession
from runs.models import Run, RunStatus


def run_using(session_id: str) -> str | None:
    """Return the id of the running run that uses a session."""
    using = Run.objects.filter(session_id=session_id, owns_session=False, status=RunStatus.RUNNING)
    return using.values_list("id", flat=True).first()


def runs_using(session_ids: list[str]) -> dict[str, str]:
    """Return the ids of the running runs that use these sessions, by session."""
    using = Run.objects.filter(
        session_id__in=session_ids, owns_session=False, status=RunStatus.RUNNING
    )
    return dict(using.values_list("session_id", "id"))


def acquire_session(run: Run, worker_id: str) -> bool:
    """Acquire a run's session for a worker, in the transaction of the claim; False: another run
    uses it.

    A closed session is acquired too: the run starts, and fails because the session is missing.
    """
    row = BrowserSession.objects.filter(id=run.session_id)
    # The update locks the row: of two concurrent claims the second sees the first's run.
    row.update(used_at=datetime.now(UTC))
    row.filter(closed_at__isnull=True).update(worker_id=worker_id)
    return run_using(run.session_id) in (None, run.id)


def lock_session(session_id: str) -> BrowserSession | None:
    """Return an open session's row, locked in the caller's transaction so that no run starts in
    it.
    """
    rows = BrowserSession.objects.select_for_update()
    return rows.filter(id=session_id, closed_at__isnull=True).first()


def release_session(session_id: str, worker_id: str) -> bool:
    """Release a session that no run uses, so that any worker may open it; False: a run uses it, or
    another worker has it.
    """
    with transaction.atomic():
        row = lock_session(session_id)
        if row is None or row.worker_id != worker_id or run_using(session_id) is not None:
            return False
        row.worker_id = None
        row.save(update_fields=["worker_id"])
    return True


def release_session_with_run(session_id: str, worker_id: str) -> None:
    """Release a session whose run this worker is about to release too."""
    BrowserSession.objects.filter(id=session_id, worker_id=worker_id).update(worker_id=None)
