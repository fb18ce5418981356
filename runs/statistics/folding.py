"""Count ended runs in the statistics.

A trigger (`runs.queries.totals`) inserts a row into `EndedRun` in the transaction that ends a run.
The scheduler deletes these rows and adds their runs to the periods in one transaction, so each run
is counted once, however often it is interrupted and however many schedulers run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db import connection, transaction

from runs.models import Run
from runs.statistics.histogram import bucket_of
from runs.statistics.periods import OTHER, Additions

BATCH = 500  # runs per transaction
KIND_MAX = 24  # characters
PAGE_KINDS = frozenset({"read", "page view"})  # steps that read a page
_AGENT_KINDS = {"turn": "model turn", "summary": "model turn", "call": "tool call"}
_AGENT_KINDS |= {"action": "tool call", "page": "page view"}
_MS = timedelta(milliseconds=1)
# By run: the first word of a step's name, the kind that agents' steps have, the number of steps,
# how many succeeded, and the usage of the model. Outputs of other steps may be long: not read.
_STEPS = {
    "postgresql": """
        SELECT run_id, split_part(name, ' ', 1), input ->> 'kind', COUNT(*),
               COUNT(*) FILTER (WHERE status = 'succeeded'),
               SUM(CASE WHEN input ->> 'kind' IN ('turn', 'summary')
                   THEN (output -> 'usage' ->> 'inputTokens')::numeric END),
               SUM(CASE WHEN input ->> 'kind' IN ('turn', 'summary')
                   THEN (output -> 'usage' ->> 'outputTokens')::numeric END),
               SUM(CASE WHEN input ->> 'kind' IN ('turn', 'summary')
                   THEN (output -> 'usage' ->> 'costUsd')::numeric END)
        FROM runs_runstep WHERE run_id = ANY(%s) AND status IN ('succeeded', 'failed')
        GROUP BY 1, 2, 3""",
    "sqlite": """
        SELECT run_id, substr(name, 1, instr(name || ' ', ' ') - 1), json_extract(input, '$.kind'),
               COUNT(*), SUM(status = 'succeeded'),
               SUM(CASE WHEN json_extract(input, '$.kind') IN ('turn', 'summary')
                   THEN json_extract(output, '$.usage.inputTokens') END),
               SUM(CASE WHEN json_extract(input, '$.kind') IN ('turn', 'summary')
                   THEN json_extract(output, '$.usage.outputTokens') END),
               SUM(CASE WHEN json_extract(input, '$.kind') IN ('turn', 'summary')
                   THEN json_extract(output, '$.usage.costUsd') END)
        FROM runs_runstep WHERE run_id IN (SELECT value FROM json_each(%s))
        AND status IN ('succeeded', 'failed') GROUP BY 1, 2, 3""",
}


def fold_statistics() -> int:
    """Add the runs that ended to the statistics; return how many. Commits; safe to run
    concurrently, and again after an interruption.
    """
    folded = 0
    while _has_ended_runs():
        with transaction.atomic():
            number = _fold_batch()
        folded += number
        if number < BATCH:
            break
    return folded


def _has_ended_runs() -> bool:
    with connection.cursor() as cursor:  # unlike a DELETE that finds nothing, this takes no lock
        cursor.execute("SELECT 1 FROM runs_endedrun LIMIT 1")
        return cursor.fetchone() is not None


def _fold_batch() -> int:
    skip = "FOR UPDATE SKIP LOCKED" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM runs_endedrun WHERE id IN"  # noqa: S608  (built from constants only)
            f" (SELECT id FROM runs_endedrun ORDER BY id LIMIT {BATCH} {skip}) RETURNING run_id"
        )
        run_ids = [run_id for (run_id,) in cursor.fetchall()]
    _count(sorted(set(run_ids)))
    return len(run_ids)


def _count(run_ids: Sequence[str]) -> None:
    additions, steps = Additions(), _steps_of(run_ids)
    rows = Run.objects.filter(id__in=run_ids, ended_at__isnull=False).values_list(
        "id",
        "workspace_id",
        "template_id",
        "status",
        "active_ms",
        "created_at",
        "started_at",
        named=True,
    )
    for run in rows:
        values: dict[str, Any] = {str(run.status): 1, **steps.get(run.id, {})}
        if run.started_at is not None:
            waited_ms = (run.started_at - run.created_at) / _MS
            values["active_ms"] = run.active_ms
            values["durations"] = Counter({bucket_of(run.active_ms): 1})
            values["waits"] = Counter({bucket_of(waited_ms): 1})
        additions.add(run.created_at, run.workspace_id, run.template_id, **values)
    additions.write()


def _steps_of(run_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the steps by kind, the pages and the usage of the model, by run."""
    found: dict[str, dict[str, Any]] = {}
    with connection.cursor() as cursor:
        ids = list(run_ids) if connection.vendor == "postgresql" else _as_json(run_ids)
        cursor.execute(_STEPS[connection.vendor], [ids])
        for run_id, word, agent_kind, number, succeeded, read, written, cost in cursor.fetchall():
            values = found.setdefault(run_id, {"steps": Counter(), "pages": 0})
            kind = kind_of(word, agent_kind)
            values["steps"][kind] += number
            values["pages"] += succeeded if kind in PAGE_KINDS else 0
            for name, amount in (
                ("input_tokens", read),
                ("output_tokens", written),
                ("cost_micro_usd", None if cost is None else float(cost) * 1_000_000),
            ):
                values[name] = values.get(name, 0) + round(amount or 0)
    return found


def _as_json(run_ids: Sequence[str]) -> str:
    return json.dumps(list(run_ids))


def kind_of(first_word: str, agent_kind: str | None) -> str:
    """Return the kind of a step, for people: of an agent's step by its input, else the first word
    of its name.
    """
    if agent_kind in _AGENT_KINDS:
        return _AGENT_KINDS[agent_kind]
    return first_word[:KIND_MAX] or OTHER
