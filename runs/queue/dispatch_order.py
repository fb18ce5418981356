"""Dispatch order: which queued run is claimed next (fair share per workspace)."""

from __future__ import annotations

from functools import cache

from django.conf import settings
from django.db import connection

from decisions.infra import prepared_statements
from runs.models import Run
from runs.queue.eligibility import served_sql

# The condition of the index run_waiting: one probe finds the first run of each workspace, however
# many wait. Templates and the worker's id are bound parameters.
WAITING = "ready AND lease_owner IS NULL AND status IN ('queued', 'running')"
_FIRST = f"""
    SELECT id, status, workspace_id, created_at FROM runs_run
    WHERE {WAITING} AND workspace_id = waiting.workspace_id AND (SERVED)
      AND (pinned_worker IS NULL OR pinned_worker NOT IN (
           SELECT id FROM runs_worker WHERE lost_at IS NULL AND id <> %s))
      AND (owns_session OR NOT EXISTS (
           SELECT 1 FROM runs_run other WHERE other.session_id = runs_run.session_id
             AND NOT other.owns_session AND other.status = 'running' AND other.id <> runs_run.id))
      AND (owns_session OR NOT EXISTS (
           SELECT 1 FROM runners_browsersession session WHERE session.id = runs_run.session_id
             AND session.worker_id IN (
                 SELECT id FROM runs_worker WHERE lost_at IS NULL AND id <> %s)))
    ORDER BY status DESC, created_at, id LIMIT 1"""  # noqa: S608  (only constants of this module)
# The workspaces with a waiting run; the last row is NULL.
WAITING_WORKSPACES = f"""
    WITH RECURSIVE waiting (workspace_id) AS (
        SELECT (SELECT workspace_id FROM runs_run WHERE {WAITING}
                ORDER BY workspace_id LIMIT 1)
        UNION ALL
        SELECT (SELECT workspace_id FROM runs_run
                WHERE {WAITING} AND workspace_id > waiting.workspace_id
                ORDER BY workspace_id LIMIT 1)
        FROM waiting WHERE waiting.workspace_id IS NOT NULL)"""  # noqa: S608  (only constants of this module)
_QUERY = f"""{WAITING_WORKSPACES}
    SELECT COLUMNS FROM runs_run turn WHERE turn.id = (
    SELECT r.id FROM waiting FIRST_OF_EACH
    WHERE EXISTS (SELECT 1 FROM runs_slot WHERE run_id IS NULL AND number < %s)
    ORDER BY r.status DESC,
             (SELECT COUNT(*) FROM runs_slot s WHERE s.workspace_id = r.workspace_id),
             r.created_at, r.id
    LIMIT 1)"""  # noqa: S608
_LATERAL = _QUERY.replace("FIRST_OF_EACH", f"CROSS JOIN LATERAL ({_FIRST}) r")
_BY_ID = "JOIN runs_run r ON r.id = (SELECT id FROM (THIS))"  # SQLite has no LATERAL
_JOINED = _QUERY.replace("FIRST_OF_EACH", _BY_ID.replace("THIS", _FIRST))


def next_run(worker_id: str, *, of_any: bool = False) -> Run | None:
    """Return the run to claim next, read without a lock; None where none waits or no slot is free.

    Runs that resume come before runs that start, then the workspace with the fewest running runs,
    then the oldest run. A run whose session is open in another live worker is left to that worker;
    one whose session another run uses waits for that run's end. Runs that this worker does not
    serve (`runs.queue.eligibility`) are left out, unless `of_any`.
    """
    where, ours = ("1 = 1", []) if of_any else served_sql()
    params = [*ours, worker_id, worker_id, settings.MAX_CONCURRENT_RUNS]
    postgresql = connection.vendor == "postgresql"
    query = _query(where, is_postgresql=postgresql)
    found = (
        prepared_statements.fetch_rows(Run, query, params)
        if postgresql
        else Run.objects.raw(query, params)
    )
    return next(iter(found), None)


@cache
def _query(served: str, *, is_postgresql: bool) -> str:
    query = (_LATERAL if is_postgresql else _JOINED).replace("SERVED", served)
    return query.replace("COLUMNS", prepared_statements.columns_of(Run, "turn"))
