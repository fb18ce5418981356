"""Read one run that exists for the caller (`decisions.identity.authority`), within its TTL.

Nearly every request does this, so the SQL is built once.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from django.conf import settings
from django.db import connection

from artifacts.models import RESULT
from decisions.foundation.errors import RunNotFound
from decisions.identity.authority import sees
from decisions.identity.principals import Principal
from runs.models import Run

_COLUMNS = ", ".join(f'"{field.column}"' for field in Run._meta.concrete_fields)
_VISIBLE = "FROM runs_run WHERE id = %(run)s AND workspace_id = %(workspace)s AND hidden_at IS NULL"
_RUN = f"SELECT {_COLUMNS} {_VISIBLE}"
# In the same statement the ids of its artifacts, in the order of `artifact_ids_of`.
_RUN_WITH_ARTIFACTS = {
    vendor: f"""
    SELECT {_COLUMNS}, (
        SELECT {json_list}(a.id) FROM (
            SELECT id FROM artifacts_artifact WHERE artifacts_artifact.run_id = runs_run.id
            ORDER BY kind <> '{RESULT}', created_at, id) a) AS artifact_ids
    {_VISIBLE}"""  # noqa: S608  (built from constants only)
    for vendor, json_list in (("postgresql", "json_agg"), ("sqlite", "json_group_array"))
}


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
    return _read(_RUN, principal, run_id)


def visible_run_with_artifacts(principal: Principal, run_id: str) -> tuple[Run, list[str]]:
    """Return the same, and the ids of the run's artifacts, the whole result first; one statement.

    Raises:
        RunNotFound: As `visible_run`.
    """
    run = _read(_RUN_WITH_ARTIFACTS[connection.vendor], principal, run_id)
    ids: Any = vars(run)["artifact_ids"] or []
    return run, orjson.loads(ids) if isinstance(ids, str) else list(ids)


def _read(statement: str, principal: Principal, run_id: str) -> Run:
    params = {"run": run_id, "workspace": principal.workspace_id}
    run = next(iter(Run.objects.raw(statement, params)), None)
    if run is None or not sees(principal, run) or is_past_ttl(run):
        raise RunNotFound(f"There is no run {run_id[:64]}.")
    return run
