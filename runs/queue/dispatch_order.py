"""Dispatch order: which queued run is claimed next (fair share per workspace)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import connection

from decisions.foundation.infra import prepared_statements
from runs.models import Run, RunStep
from runs.queue.eligibility import CLAIMABLE, served_versions

_RUN = prepared_statements.columns_of(Run, "turn")
# How many runs are considered: one more claim at once than this finds the first one locked.
_AHEAD = 20
# The next runs in the order in which claims one after the other would take them: each run of a
# workspace counts as running for the later ones. With `lock`, the first that no other transaction
# has locked is locked and returned; where all are locked, and without, the first.
_NEXT = f"""
WITH RECURSIVE
claimable AS NOT MATERIALIZED ({CLAIMABLE}),
-- One probe of the index for each workspace, however many runs wait.
first_of_each AS (
    (SELECT * FROM claimable ORDER BY workspace_id, status DESC, created_at, id LIMIT 1)
    UNION ALL
    SELECT run.* FROM first_of_each previous CROSS JOIN LATERAL (
        SELECT * FROM claimable WHERE claimable.workspace_id > previous.workspace_id
        ORDER BY workspace_id, status DESC, created_at, id LIMIT 1) run),
-- With the slots that each workspace has. They are appended and grouped: a join of 1 000 workspaces
-- with 1 000 slots is a nested loop without statistics.
next_workspaces AS (
    SELECT workspace_id, SUM(takes) AS taken FROM (
        SELECT id, workspace_id, status, created_at, 0 AS takes FROM first_of_each
        UNION ALL
        SELECT NULL, workspace_id, NULL, NULL, 1 FROM runs_slot WHERE run_id IS NOT NULL) either
    WHERE EXISTS (SELECT 1 FROM runs_slot WHERE run_id IS NULL AND number < %(slots)s)
    GROUP BY workspace_id HAVING MAX(id) IS NOT NULL
    ORDER BY MAX(status) DESC, taken, MAX(created_at), MAX(id) LIMIT {_AHEAD}),
ahead AS (
    SELECT run.id, run.status, run.created_at, next.taken + ROW_NUMBER() OVER (
        PARTITION BY run.workspace_id ORDER BY run.status DESC, run.created_at, run.id) AS taken
    FROM next_workspaces next CROSS JOIN LATERAL (
        SELECT * FROM claimable WHERE claimable.workspace_id = next.workspace_id
        ORDER BY status DESC, created_at, id LIMIT {_AHEAD}) run),
candidates AS MATERIALIZED (
    SELECT id, ROW_NUMBER() OVER (ORDER BY status DESC, taken, created_at, id) AS place
    FROM ahead ORDER BY place LIMIT {_AHEAD}),
locked AS MATERIALIZED (
    SELECT run.* FROM candidates JOIN runs_run run ON run.id = candidates.id
    WHERE %(lock)s
      AND run.ready AND run.lease_owner IS NULL AND run.status IN ('queued', 'running')
    ORDER BY candidates.place LIMIT 1 FOR NO KEY UPDATE OF run SKIP LOCKED),
turn AS (
    SELECT * FROM locked
    UNION ALL
    SELECT run.* FROM runs_run run
    WHERE NOT EXISTS (SELECT 1 FROM locked)
      AND run.id = (SELECT id FROM candidates WHERE place = 1))
SELECT {_RUN},
    -- Its steps, if no worker claimed it before: only then a write since the statement's snapshot
    -- cannot have changed them.
    CASE WHEN turn.epoch = 0 THEN (
        SELECT json_agg(step ORDER BY step.index)::text FROM runs_runstep step
        WHERE step.run_id = turn.id) END,
    (SELECT COUNT(*) FROM candidates) > 1  -- whether other runs wait
FROM turn"""  # noqa: S608  (only constants)
# For SQLite, which has no LATERAL and locks the database: the first run.
_NEXT_ON_SQLITE = f"""
WITH RECURSIVE
claimable AS NOT MATERIALIZED ({CLAIMABLE}),
first_of_each AS (  -- the last row is NULL
    SELECT (SELECT id FROM claimable
            ORDER BY workspace_id, status DESC, created_at, id LIMIT 1) AS id
    UNION ALL
    SELECT (SELECT id FROM claimable WHERE claimable.workspace_id > previous.workspace_id
            ORDER BY workspace_id, status DESC, created_at, id LIMIT 1)
    FROM first_of_each JOIN runs_run previous ON previous.id = first_of_each.id)
SELECT {_RUN} FROM first_of_each JOIN runs_run turn ON turn.id = first_of_each.id
WHERE EXISTS (SELECT 1 FROM runs_slot WHERE run_id IS NULL AND number < %(slots)s)
ORDER BY status DESC,
    (SELECT COUNT(*) FROM runs_slot WHERE run_id IS NOT NULL
       AND workspace_id = turn.workspace_id),
    created_at, turn.id
LIMIT 1"""  # noqa: S608  (only constants)


def next_run(worker_id: str, *, of_any: bool = False, lock: bool = False) -> Run | None:
    """Return the run to claim next; None where none waits or no slot is free.

    Runs that resume come before runs that start, then the workspace with the fewest running runs,
    then the oldest run. A run whose session is open in another live worker is left to that worker;
    one whose session another run uses waits for that run's end. Runs that this worker does not
    serve (`runs.queue.eligibility`) are left out, unless `of_any`.

    With `lock`, on PostgreSQL: runs that other transactions have locked are skipped, and the
    returned one is locked until the caller's transaction ends. If the next _AHEAD runs are all
    locked, the first of them is returned without a lock. On PostgreSQL, the steps of a run that was
    never claimed are read with it (`Run.steps`), and whether other runs wait (`Run.others_wait`).
    """
    params = {
        "worker": worker_id,
        "served": served_versions(),
        "of_any": of_any,
        "slots": settings.MAX_CONCURRENT_RUNS,
        "lock": lock,
    }
    if connection.vendor != "postgresql":
        return next(iter(prepared_statements.fetch_rows(Run, _NEXT_ON_SQLITE, params)), None)
    found = prepared_statements.fetch_rows_and_more(Run, _NEXT, params)
    return _with_more(*found[0]) if found else None


def _with_more(run: Run, more: Sequence[Any]) -> Run:
    """Give the run its steps, as prefetched rows, and `others_wait`."""
    rows, run.others_wait = more
    if rows is not None:
        steps = run.steps.all()
        steps._result_cache = prepared_statements.rows_of_json(RunStep, rows)
        vars(run)["_prefetched_objects_cache"] = {"steps": steps}
    return run
