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
_VISIBLE = (
    f"SELECT {_COLUMNS} FROM runs_run"  # noqa: S608  (built from constants only)
    " WHERE id = %s AND workspace_id = %s AND hidden_at IS NULL"
)
# In the same statement the ids of its artifacts, in the order of `artifact_ids_of`.
_ARTIFACT_IDS = (
    "(SELECT JSON_LIST(a.id) FROM (SELECT id FROM artifacts_artifact"  # noqa: S608
    " WHERE artifacts_artifact.run_id = runs_run.id"
    f" ORDER BY kind <> '{RESULT}', created_at, id) a) AS artifact_ids"
)
_WITH_ARTIFACTS = _VISIBLE.replace(_COLUMNS, f"{_COLUMNS}, {_ARTIFACT_IDS}", 1)
_JSON_LIST = {"postgresql": "json_agg", "sqlite": "json_group_array"}


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
    return _read(_VISIBLE, principal, run_id)


def visible_run_with_artifacts(principal: Principal, run_id: str) -> tuple[Run, list[str]]:
    """Return the same, and the ids of the run's artifacts, the whole result first; one statement.

    Raises:
        RunNotFound: As `visible_run`.
    """
    json_list = _JSON_LIST[connection.vendor]
    run = _read(_WITH_ARTIFACTS.replace("JSON_LIST", json_list), principal, run_id)
    ids: Any = vars(run)["artifact_ids"] or []
    return run, orjson.loads(ids) if isinstance(ids, str) else list(ids)


def _read(statement: str, principal: Principal, run_id: str) -> Run:
    run = next(iter(Run.objects.raw(statement, [run_id, principal.workspace_id])), None)
    if run is None or not sees(principal, run) or is_past_ttl(run):
        raise RunNotFound(f"There is no run {run_id[:64]}.")
    return run
