"""Read one run that exists for the caller (`decisions.identity.authority`), within its TTL.

Nearly every request does this, so the SQL is built once.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.conf import settings

from decisions.errors import RunNotFound
from decisions.identity.authority import sees
from decisions.identity.principals import Principal
from runs.models import Run

_COLUMNS = ", ".join(f'"{field.column}"' for field in Run._meta.concrete_fields)
_VISIBLE = (
    f"SELECT {_COLUMNS} FROM runs_run"  # noqa: S608  (built from constants only)
    " WHERE id = %s AND workspace_id = %s AND hidden_at IS NULL"
)


def is_past_ttl(run: Run) -> bool:
    """Return whether a run ended longer than runTtl ago: the API no longer shows it, and its
    idempotency key is free.
    """
    ttl = timedelta(milliseconds=settings.RUN_TTL_MS)
    return run.hidden_at is not None or (
        run.ended_at is not None and run.ended_at + ttl <= datetime.now(UTC)
    )


def visible_run(principal: Principal, run_id: str) -> Run:
    """Return a run that the caller sees and that is within its TTL.

    Raises:
        RunNotFound: Unknown, past its TTL, or another's; the error does not say which.
    """
    run = next(iter(Run.objects.raw(_VISIBLE, [run_id, principal.workspace_id])), None)
    if run is None or not sees(principal, run) or is_past_ttl(run):
        raise RunNotFound(f"There is no run {run_id[:64]}.")
    return run
