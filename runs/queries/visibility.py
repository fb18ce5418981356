"""One run as its callers may see it: in their workspace, within its time. Nearly every call asks
for it, so its statement is made once.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.conf import settings

from decisions.errors import RunNotFound
from decisions.identity.principals import Principal
from runs.models import Run

_COLUMNS = ", ".join(f'"{field.column}"' for field in Run._meta.concrete_fields)
_VISIBLE = (
    f"SELECT {_COLUMNS} FROM runs_run"  # noqa: S608  (only our own constants go in)
    " WHERE id = %s AND workspace_id = %s AND hidden_at IS NULL"
)


def is_past_ttl(run: Run) -> bool:
    """Tell whether a run ended longer than runTtl ago: gone from the API, and its key free."""
    ttl = timedelta(milliseconds=settings.RUN_TTL_MS)
    return run.hidden_at is not None or (
        run.ended_at is not None and run.ended_at + ttl <= datetime.now(UTC)
    )


def visible_run(principal: Principal, run_id: str) -> Run:
    """Return a run of the caller's workspace that is within its time.

    Raises:
        RunNotFound: Unknown, past its time, or another workspace's: all read the same.
    """
    run = next(iter(Run.objects.raw(_VISIBLE, [run_id, principal.workspace_id])), None)
    if run is None or is_past_ttl(run):
        raise RunNotFound(f"There is no run {run_id[:64]}.")
    return run
