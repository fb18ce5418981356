"""Dispatch order: which queued run is claimed next (fair share per workspace)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from django.conf import settings
from django.db import connection

from decisions.foundation.infra import prepared_statements
from runs.models import Run, RunStep
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
_LATERAL = f"waiting CROSS JOIN LATERAL ({_FIRST}) r"
# For SQLite, which has no LATERAL.
_BY_ID = f"waiting JOIN runs_run r ON r.id = (SELECT id FROM ({_FIRST}))"  # noqa: S608
# The first run of each workspace, and how many slots its workspace has; slots are appended and
# grouped, because a join of 1 000 workspaces with 1 000 slots is a nested loop without statistics.
_IN_ORDER = """
    SELECT MAX(id) AS id, workspace_id, SUM(takes) AS taken FROM (
        SELECT r.id, r.status, r.created_at, r.workspace_id, 0 AS takes FROM FIRST_OF_EACH
        UNION ALL
        SELECT NULL, NULL, NULL, workspace_id, 1 FROM runs_slot WHERE run_id IS NOT NULL) either
    WHERE EXISTS (SELECT 1 FROM runs_slot WHERE run_id IS NULL AND number < %s)
    GROUP BY workspace_id HAVING MAX(id) IS NOT NULL
    ORDER BY MAX(status) DESC, taken, MAX(created_at), MAX(id)"""
_NEXT = f"""{WAITING_WORKSPACES}
    SELECT COLUMNS FROM runs_run turn WHERE turn.id = (
        SELECT id FROM ({_IN_ORDER} LIMIT 1) first_of_all)"""  # noqa: S608
# The next runs in the order in which claims one after the other would take them: each run of a
# workspace counts as running for the later ones. The first that no other transaction has locked is
# locked and returned; where all are locked, the first. With it its steps, if no worker claimed it
# before: only then a write since the statement's snapshot cannot have changed them.
LOCKED_AT_ONCE = 20
_FIRST_FEW = _FIRST.replace("LIMIT 1", f"LIMIT {LOCKED_AT_ONCE}")
_OWN = "turn.ready AND turn.lease_owner IS NULL AND turn.status IN ('queued', 'running')"
_LOCK = f"""{WAITING_WORKSPACES},
    next_workspaces AS ({_IN_ORDER} LIMIT {LOCKED_AT_ONCE}),
    ahead AS (
        SELECT r.id, r.status, r.created_at, waiting.taken + ROW_NUMBER() OVER (
            PARTITION BY r.workspace_id ORDER BY r.status DESC, r.created_at, r.id) AS taken
        FROM next_workspaces waiting CROSS JOIN LATERAL ({_FIRST_FEW}) r),
    candidates AS MATERIALIZED (
        SELECT id, ROW_NUMBER() OVER (ORDER BY status DESC, taken, created_at, id) AS place
        FROM ahead ORDER BY place LIMIT {LOCKED_AT_ONCE}),
    locked AS MATERIALIZED (
        SELECT COLUMNS FROM candidates JOIN runs_run turn ON turn.id = candidates.id
        WHERE {_OWN} ORDER BY candidates.place LIMIT 1 FOR NO KEY UPDATE OF turn SKIP LOCKED),
    found AS (
        SELECT * FROM locked UNION ALL
        SELECT COLUMNS FROM runs_run turn
        WHERE NOT EXISTS (SELECT 1 FROM locked)
          AND turn.id = (SELECT id FROM candidates WHERE place = 1))
    SELECT found.*,
        CASE WHEN found.epoch = 0 THEN (
            SELECT json_agg(s ORDER BY s.index)::text FROM runs_runstep s
            WHERE s.run_id = found.id) END,
        (SELECT COUNT(*) FROM candidates) > 1
    FROM found"""  # noqa: S608


def next_run(worker_id: str, *, of_any: bool = False, lock: bool = False) -> Run | None:
    """Return the run to claim next; None where none waits or no slot is free.

    Runs that resume come before runs that start, then the workspace with the fewest running runs,
    then the oldest run. A run whose session is open in another live worker is left to that worker;
    one whose session another run uses waits for that run's end. Runs that this worker does not
    serve (`runs.queue.eligibility`) are left out, unless `of_any`.

    With `lock`, on PostgreSQL: runs that other transactions have locked are skipped, and the
    returned one is locked until the caller's transaction ends. If the next LOCKED_AT_ONCE runs are
    all locked, the first of them is returned without a lock. The steps of a run that was never
    claimed are read with it (`Run.steps`), and whether other runs wait (`Run.others_wait`).
    """
    where, ours = ("1 = 1", []) if of_any else served_sql()
    served = [*ours, worker_id, worker_id]
    params = [*served, settings.MAX_CONCURRENT_RUNS]
    first_of_each = _LATERAL if connection.vendor == "postgresql" else _BY_ID
    query = _query(_LOCK if lock else _NEXT, first_of_each, where)
    if not lock:
        return next(iter(prepared_statements.fetch_rows(Run, query, params)), None)
    found = prepared_statements.fetch_rows_and_more(Run, query, [*params, *served])
    return _with_more(*found[0]) if found else None


def _with_more(run: Run, more: Sequence[Any]) -> Run:
    """Give the run its steps, as prefetched rows, and `others_wait`."""
    rows, run.others_wait = more
    if rows is not None:
        steps = run.steps.all()
        steps._result_cache = prepared_statements.rows_of_json(RunStep, rows)
        vars(run)["_prefetched_objects_cache"] = {"steps": steps}
    return run


@cache
def _query(text: str, first_of_each: str, served: str) -> str:
    query = text.replace("FIRST_OF_EACH", first_of_each).replace("SERVED", served)
    return query.replace("COLUMNS", prepared_statements.columns_of(Run, "turn"))
