"""Totals of visible runs per workspace, template and status, so that a list of a million runs does
not count them; and the triggers of the runs table.

Triggers on the runs table insert a row into `RunTotalChange` in the transaction that makes a run
visible, changes its status, or hides it; so the totals match the rows, whatever code writes them.
Change rows are only inserted, so concurrent runs do not wait for each other. The scheduler folds
them into `RunTotal`. A total is the sum of both tables, read in one statement.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection, transaction

FOLD_BATCH = 5000
_LINE = "INSERT INTO runs_runtotalchange (workspace_id, template_id, was, became, number)"
_SEEN, _MOVES = (
    "CASE WHEN {row}.hidden_at IS NULL THEN {row}.status END",
    (
        "OLD.hidden_at IS NULL AND NEW.hidden_at IS NOT NULL"
        " OR OLD.hidden_at IS NOT NULL AND NEW.hidden_at IS NULL"
        " OR NEW.hidden_at IS NULL AND OLD.status <> NEW.status"
    ),
)
_ENDED = "{row}.status IN ('succeeded', 'partial_success', 'failed', 'canceled')"
_COUNT = "INSERT INTO runs_endedrun (run_id) VALUES (NEW.id);"  # for runs.statistics
_WAS, _IS = _SEEN.format(row="OLD"), _SEEN.format(row="NEW")
# Each trigger: the event it fires after, its condition, and the change row that it inserts.
_TRIGGERS = {
    "runs_total_added": (
        "INSERT",
        "NEW.hidden_at IS NULL",
        f"{_LINE} VALUES (NEW.workspace_id, NEW.template_id, NULL, NEW.status, 1);",
    ),
    "runs_total_moved": (
        "UPDATE OF status, hidden_at",
        _MOVES,
        f"{_LINE} VALUES (NEW.workspace_id, NEW.template_id, {_WAS}, {_IS}, 1);",
    ),
    "runs_total_removed": (
        "DELETE",
        "OLD.hidden_at IS NULL",
        f"{_LINE} VALUES (OLD.workspace_id, OLD.template_id, OLD.status, NULL, 1);",
    ),
    "runs_statistic_ended": (
        "UPDATE OF status",
        f"{_ENDED.format(row='NEW')} AND NOT {_ENDED.format(row='OLD')}",
        _COUNT,
    ),
    "runs_statistic_inserted": ("INSERT", _ENDED.format(row="NEW"), _COUNT),
}
_PLACED = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'runs_run'",
    "postgresql": "SELECT tgname FROM pg_trigger WHERE tgrelid = to_regclass('runs_run')",
}
_LINES = """
    SELECT workspace_id, template_id, status, number FROM runs_runtotal
    UNION ALL
    SELECT workspace_id, template_id, became, number FROM runs_runtotalchange
    WHERE became IS NOT NULL
    UNION ALL
    SELECT workspace_id, template_id, was, -number FROM runs_runtotalchange
    WHERE was IS NOT NULL"""
# A run entered a status if it had another one before, or if it was submitted. A run that becomes
# visible again, and a repaired total, do not count as entering.
_TOTALS_BY_STATUS = """
    SELECT template_id, status, SUM(number), SUM(entered) FROM (
        SELECT template_id, status, number, entered FROM runs_runtotal
        UNION ALL
        SELECT template_id, became, number,
               CASE WHEN was IS NOT NULL OR became = 'queued' THEN number ELSE 0 END
        FROM runs_runtotalchange WHERE became IS NOT NULL
        UNION ALL
        SELECT template_id, was, -number, 0 FROM runs_runtotalchange
        WHERE was IS NOT NULL) counted
    GROUP BY template_id, status"""
# One statement reads one snapshot: a concurrent commit changes runs and totals alike, so it does
# not show up as a difference.
_DIFFERENCES = f"""
    SELECT workspace_id, template_id, status, SUM(number) AS number FROM (
        SELECT workspace_id, template_id, status, COUNT(*) AS number FROM runs_run
        WHERE hidden_at IS NULL GROUP BY workspace_id, template_id, status
        UNION ALL
        SELECT workspace_id, template_id, status, -number FROM ({_LINES}) counted) both_sides
    GROUP BY workspace_id, template_id, status HAVING SUM(number) <> 0"""  # noqa: S608


class VisibleRuns(NamedTuple):
    """How many runs a list has.

    Attributes:
        visible: the matching runs that are not hidden.
        past_ttl: those of them that are past their TTL, but which the scheduler has not hidden yet.
        left_out: those of the template that was left out.
    """

    visible: int
    past_ttl: int
    left_out: int


def count_visible(
    workspace_id: str,
    *,
    status: str | None,
    template_id: str | None,
    ended_before: datetime,
    without: str = "",
) -> VisibleRuns:
    """Count the visible runs of a workspace, and those that ended before `ended_before`.

    Args:
        without: a template whose runs are not counted.
    """
    wheres = ["workspace_id = %s"]
    params: list[Any] = [workspace_id]
    for name, value in (("status", status), ("template_id", template_id)):
        if value is not None:
            wheres.append(f"{name} = %s")
            params.append(value)
    matching = " AND ".join(wheres)
    ended = connection.ops.adapt_datetimefield_value(ended_before)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_sum('<>')}, (SELECT COUNT(*) FROM runs_run WHERE hidden_at IS NULL"  # noqa: S608
            f" AND ended_at <= %s AND template_id <> %s AND {matching}), {_sum('=')}"
            f" FROM ({_LINES}) counted WHERE {matching}",
            [without, ended, without, *params, without, *params],
        )
        return VisibleRuns(*map(int, cursor.fetchone()))


def _sum(comparison: str) -> str:
    return f"COALESCE(SUM(number) FILTER (WHERE template_id {comparison} %s), 0)"


def totals_by_status() -> dict[tuple[str, str], tuple[int, int]]:
    """Return {(template id, status): (visible runs, runs that ever entered the status)} of all
    workspaces; one query that does not read the runs table.
    """
    with connection.cursor() as cursor:
        cursor.execute(_TOTALS_BY_STATUS)
        return {(row[0], row[1]): (int(row[2]), int(row[3])) for row in cursor.fetchall()}


def fold_totals() -> int:
    """Fold change rows into the totals; return how many. Commits; safe to run concurrently."""
    folded = 0
    while _has_lines():
        with transaction.atomic():
            number = _fold_batch()
        folded += number
        if number < FOLD_BATCH:
            break
    return folded


def _has_lines() -> bool:
    with connection.cursor() as cursor:  # unlike a DELETE that finds nothing, this takes no lock
        cursor.execute("SELECT 1 FROM runs_runtotalchange LIMIT 1")
        return cursor.fetchone() is not None


def _fold_batch() -> int:
    skip = "FOR UPDATE SKIP LOCKED" if connection.vendor == "postgresql" else ""
    moved: Counter[tuple[str, str, str]] = Counter()
    entered: Counter[tuple[str, str, str]] = Counter()
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM runs_runtotalchange WHERE id IN"  # noqa: S608  (built from constants only)
            f" (SELECT id FROM runs_runtotalchange ORDER BY id LIMIT {FOLD_BATCH} {skip})"
            " RETURNING workspace_id, template_id, was, became, number"
        )
        lines = cursor.fetchall()
        for workspace_id, template_id, was, became, number in lines:
            moved[workspace_id, template_id, was] -= number
            moved[workspace_id, template_id, became] += number
            if was is not None or became == "queued":
                entered[workspace_id, template_id, became] += number
        # Sorted, so that concurrent folds lock rows in the same order and do not deadlock.
        rows = sorted(
            (*key, number, entered[key])
            for key, number in moved.items()
            if key[2] and (number or entered[key])
        )
        cursor.executemany(
            "INSERT INTO runs_runtotal (workspace_id, template_id, status, number, entered)"
            " VALUES (%s, %s, %s, %s, %s) ON CONFLICT (workspace_id, template_id, status)"
            " DO UPDATE SET number = runs_runtotal.number + excluded.number,"
            " entered = runs_runtotal.entered + excluded.entered",
            rows,
        )
    return len(lines)


def count_inconsistent_totals() -> int:
    """Return how many totals differ from the number of runs: 0, unless triggers were missing. Reads
    every visible run.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM ({_DIFFERENCES}) differences")  # noqa: S608
        return int(cursor.fetchone()[0])


def missing_triggers() -> set[str]:
    """Return the names of the triggers that the runs table lacks."""
    with connection.cursor() as cursor:
        cursor.execute(_PLACED[connection.vendor])
        return _TRIGGERS.keys() - {name for (name,) in cursor.fetchall()}


def repair_totals() -> int:
    """Create missing triggers and correct wrong totals; return how many totals were wrong. Commits.

    Safe while runs execute: a correction is a change row like any other, and creating a trigger
    blocks all writers until the count after it is committed.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        for name in sorted(missing_triggers()):
            for statement in _trigger(name):
                cursor.execute(statement)
        cursor.execute(
            f"{_LINE} SELECT workspace_id, template_id, NULL, status, number"  # noqa: S608
            f" FROM ({_DIFFERENCES}) differences RETURNING 1"
        )
        # Not `rowcount`: in a Turkish locale sqlite3 of Python 3.11 does not recognize INSERT,
        # which has an I, as a statement that changes rows.
        return len(cursor.fetchall())


def ensure_totals(**_: Any) -> None:
    """Repair the totals after migrations (receiver of `post_migrate`): SQLite drops a table's
    triggers whenever a migration changes its columns.
    """
    if missing_triggers() and _is_migrated():
        repair_totals()


def _is_migrated() -> bool:
    return {"runs_runtotalchange", "runs_endedrun"} <= set(connection.introspection.table_names())


def _trigger(name: str) -> list[str]:
    event, when, line = _TRIGGERS[name]
    head = f"CREATE TRIGGER {name} AFTER {event} ON runs_run FOR EACH ROW"
    if connection.vendor == "sqlite":
        return [f"{head} WHEN {when} BEGIN {line} END"]
    return [
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN {line} RETURN NULL; END $$",
        f"{head} WHEN ({when}) EXECUTE FUNCTION {name}()",
    ]
