"""Whose turn is it? The order in which waiting runs get a slot (mechanisms 1)."""

from __future__ import annotations

from django.conf import settings

from runs.models import Run
from runs.task_templates.registry import list_templates

# As the index run_waiting has it: one probe finds the first of each waiting workspace, however
# many runs wait.
_WAITING = "ready AND lease_owner IS NULL AND status IN ('queued', 'running')"
_QUERY = f"""
WITH RECURSIVE waiting (workspace_id) AS (
    SELECT MIN(workspace_id) FROM runs_run WHERE {_WAITING}
    UNION ALL
    SELECT (SELECT MIN(workspace_id) FROM runs_run
            WHERE {_WAITING} AND workspace_id > waiting.workspace_id)
    FROM waiting WHERE waiting.workspace_id IS NOT NULL)
SELECT r.* FROM waiting JOIN runs_run r ON r.id = (
    SELECT id FROM runs_run
    WHERE {_WAITING} AND workspace_id = waiting.workspace_id AND template_id = ANY_OF_OURS
      AND (pinned_worker IS NULL OR pinned_worker NOT IN (
           SELECT id FROM runs_worker WHERE lost_at IS NULL AND id <> %s))
    ORDER BY status DESC, created_at, id LIMIT 1)
WHERE EXISTS (SELECT 1 FROM runs_slot WHERE run_id IS NULL AND number < %s)
ORDER BY r.status DESC,
         (SELECT COUNT(*) FROM runs_slot s WHERE s.workspace_id = r.workspace_id),
         r.created_at, r.id
LIMIT 1
"""  # noqa: S608  (only our own constants go in)


def next_run(worker_id: str) -> Run | None:
    """Return the run whose turn it would be, by one read without a lock; None where none waits
    or no slot is free.

    Runs that go on come before runs that start, then the workspace with the fewest running, then
    the oldest. A run whose session lives in another worker is left to that worker as long as it
    lives. While a fleet is upgraded, a run of a new template waits for a worker that has it.
    """
    ours = [template.template_id for template in list_templates()]
    query = _QUERY.replace("= ANY_OF_OURS", f"IN ({', '.join(['%s'] * len(ours))})")
    found = Run.objects.raw(query, [*ours, worker_id, settings.MAX_CONCURRENT_RUNS])
    return next(iter(found), None)
