"""How many runs a workspace sees: counted as they change, so that a list of a million knows its
total at once (mechanisms 22).

Triggers write a line into `RunTotalChange` in the transaction that makes a run visible, moves it to
another status, or takes it out of sight: whoever writes, however it ends, the numbers are those of
the rows. Lines are only added, so no two runs wait for each other; the scheduler folds them into
`RunTotal`. A total is what was folded and what was not yet, read in one statement.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

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
_WAS, _IS = _SEEN.format(row="OLD"), _SEEN.format(row="NEW")
# Each with the event it fires after, when, and the line it writes.
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
# A run entered a status when it came from another one, or when it was accepted; one that is only
# seen again, or counted anew, did not.
_FIGURES = """
    SELECT template_id, status, SUM(number), SUM(entered) FROM (
        SELECT template_id, status, number, entered FROM runs_runtotal
        UNION ALL
        SELECT template_id, became, number,
               CASE WHEN was IS NOT NULL OR became = 'queued' THEN number ELSE 0 END
        FROM runs_runtotalchange WHERE became IS NOT NULL
        UNION ALL
        SELECT template_id, was, -number, 0 FROM runs_runtotalchange
        WHERE was IS NOT NULL) kept
    GROUP BY template_id, status"""
# One statement, so one moment: what commits meanwhile changes rows and lines alike, and the
# difference between them stays what it is.
_ASTRAY = f"""
    SELECT workspace_id, template_id, status, SUM(number) AS number FROM (
        SELECT workspace_id, template_id, status, COUNT(*) AS number FROM runs_run
        WHERE hidden_at IS NULL GROUP BY workspace_id, template_id, status
        UNION ALL
        SELECT workspace_id, template_id, status, -number FROM ({_LINES}) kept) both_sides
    GROUP BY workspace_id, template_id, status HAVING SUM(number) <> 0"""  # noqa: S608


def count_visible(
    workspace_id: str, *, status: str | None, template_id: str | None, over: datetime
) -> tuple[int, int]:
    """Return how many runs match among those not hidden, and how many of them ended before `over`:
    those are past their time, and nobody has hidden them yet.
    """
    wheres = ["workspace_id = %s"]
    params: list[Any] = [workspace_id]
    for name, value in (("status", status), ("template_id", template_id)):
        if value is not None:
            wheres.append(f"{name} = %s")
            params.append(value)
    matching = " AND ".join(wheres)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT (SELECT COALESCE(SUM(number), 0) FROM ({_LINES}) kept WHERE {matching}),"  # noqa: S608
            f" (SELECT COUNT(*) FROM runs_run WHERE hidden_at IS NULL AND ended_at <= %s"
            f" AND {matching})",
            [*params, connection.ops.adapt_datetimefield_value(over), *params],
        )
        counted, overdue = cursor.fetchone()
    return int(counted), int(overdue)


def totals_by_status() -> dict[tuple[str, str], tuple[int, int]]:
    """Return for each template and status how many runs of all workspaces are not hidden, and how
    many ever came into it; one query that reads no run.
    """
    with connection.cursor() as cursor:
        cursor.execute(_FIGURES)
        return {(row[0], row[1]): (int(row[2]), int(row[3])) for row in cursor.fetchall()}


def fold_totals() -> int:
    """Add the lines that were written to the totals; return how many. Several at once are safe."""
    folded = 0
    while _has_lines():
        with transaction.atomic():
            number = _fold_some()
        folded += number
        if number < FOLD_BATCH:
            break
    return folded


def _has_lines() -> bool:
    with connection.cursor() as cursor:  # a look takes no lock, which a DELETE of nothing would
        cursor.execute("SELECT 1 FROM runs_runtotalchange LIMIT 1")
        return cursor.fetchone() is not None


def _fold_some() -> int:
    skip = "FOR UPDATE SKIP LOCKED" if connection.vendor == "postgresql" else ""
    moved: Counter[tuple[str, str, str]] = Counter()
    entered: Counter[tuple[str, str, str]] = Counter()
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM runs_runtotalchange WHERE id IN"  # noqa: S608  (only our own constants)
            f" (SELECT id FROM runs_runtotalchange ORDER BY id LIMIT {FOLD_BATCH} {skip})"
            " RETURNING workspace_id, template_id, was, became, number"
        )
        lines = cursor.fetchall()
        for workspace_id, template_id, was, became, number in lines:
            moved[workspace_id, template_id, was] -= number
            moved[workspace_id, template_id, became] += number
            if was is not None or became == "queued":
                entered[workspace_id, template_id, became] += number
        # In one order, so that two who fold at once never wait for each other in a circle.
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
    """Return how many totals are not the number of the rows they count: 0, unless somebody took the
    triggers away. Reads every visible run.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM ({_ASTRAY}) astray")  # noqa: S608
        return int(cursor.fetchone()[0])


def missing_triggers() -> set[str]:
    """Return the triggers that the table of runs lacks."""
    with connection.cursor() as cursor:
        cursor.execute(_PLACED[connection.vendor])
        return _TRIGGERS.keys() - {name for (name,) in cursor.fetchall()}


def repair_totals() -> int:
    """Put the triggers in place where they are missing and count anew what is astray; return how
    many totals were.

    Runs may go on meanwhile: a correction is a line like any other, and a trigger that is put in
    place holds all writers until the count after it is committed.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        for name in sorted(missing_triggers()):
            for statement in _trigger(name):
                cursor.execute(statement)
        cursor.execute(
            f"{_LINE} SELECT workspace_id, template_id, NULL, status, number"  # noqa: S608
            f" FROM ({_ASTRAY}) astray RETURNING 1"
        )
        # Not `rowcount`: in a Turkish locale Python 3.11's sqlite3 does not take INSERT, which has
        # an I, for a statement that changes rows.
        return len(cursor.fetchall())


def ensure_totals(**_: Any) -> None:
    """Mend after migrations: SQLite drops a table's triggers with every change of its columns."""
    if missing_triggers() and _is_migrated():
        repair_totals()


def _is_migrated() -> bool:
    return "runs_runtotalchange" in connection.introspection.table_names()


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
