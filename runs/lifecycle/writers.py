"""Execute what a transition writes: all of it, or nothing where its guard holds no row.

PostgreSQL gets one statement: one round trip, one plan, one commit. SQLite, which has no writes
in WITH queries, gets one statement after the other in a transaction. A test compares the rows that
both leave, and docs/decisions/0015-one-description-of-a-transition.md says why there are two.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Any

import orjson
from django.db import connection, transaction

from decisions.foundation.infra.preconditions import Precondition, all_hold
from decisions.foundation.infra.prepared_statements import SqlStatement
from runs.lifecycle.writes import InsertRows, Sql, UpdateSteps, Writes


def write_in_one_statement(writes: Writes) -> int | None:
    """Write with one PostgreSQL statement; return the run's last seq, or None."""
    statement, start = SqlStatement(), writes.call_start
    _add_run(statement, writes)
    if start is not None:
        _add_if_all_hold(statement, "may", "r.id FROM r", start.preconditions)
    for number, write in enumerate(writes.others):
        name = f"w{number}"
        if isinstance(write, InsertRows):
            _add_insert(statement, name, write)
        elif isinstance(write, UpdateSteps):
            _add_update(statement, name, write)
        else:
            statement.add(name, write.text, *_adapted(write.params))
    is_written = "false" if start is None else "EXISTS (SELECT 1 FROM may)"
    row = statement.run(f"SELECT last_seq, {is_written} FROM r")  # noqa: S608
    if row is None:
        return None
    if start is not None:
        start.is_written = bool(row[1])
    return int(row[0])


def _add_if_all_hold(
    statement: SqlStatement, name: str, selected: str, preconditions: Sequence[Precondition]
) -> None:
    """Add a part that has rows only if the preconditions hold."""
    wheres = " AND ".join(known.sql for known in preconditions) or "true"
    params = [param for known in preconditions for param in known.params]
    statement.add(name, f"SELECT {selected} WHERE {wheres}", *params)


def _add_run(statement: SqlStatement, writes: Writes) -> None:
    """Add `r`, the write of the run's row, which comes before all others: it locks the row."""
    returning = "RETURNING id, last_seq, status"
    if isinstance(writes.run, InsertRows):
        _add_if_all_hold(statement, "admitted", "1", writes.preconditions)
        statement.insert("r", writes.run.rows, source="admitted", tail=returning)
        return
    assignments, condition = writes.run
    where, params = condition.text, _adapted(condition.params)
    if (free := writes.free_slot) is not None:
        # The run's row is locked before a slot, in the order of docs/run-lifecycle.md.
        locked = f"SELECT id FROM runs_run WHERE {where} FOR NO KEY UPDATE"  # noqa: S608
        statement.add("locked", locked, *params)
        only = "EXISTS (SELECT 1 FROM locked) ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED"
        statement.add("free", f"{free.text} AND {only}", *free.params)
        where, params = "id = (SELECT id FROM locked) AND EXISTS (SELECT 1 FROM free)", []
    text = f"UPDATE runs_run SET {assignments.text} WHERE {where} {returning}"  # noqa: S608
    statement.add("r", text, *_adapted(assignments.params), *params)


def _add_insert(statement: SqlStatement, name: str, write: InsertRows) -> None:
    columns = {"seq": 'r.last_seq + v."seq"'} if write.follow_last_seq else {}
    statement.insert(name, write.rows, columns=columns, rows_of_may=write.rows_of_call)


def _add_update(statement: SqlStatement, name: str, write: UpdateSteps) -> None:
    columns = [column for column in write.rows[0] if column != "index"]
    own = "".join(f", {column} = v.{column}" for column in columns)
    statement.add(
        name,
        f"UPDATE runs_runstep AS s SET {write.assignments.text}{own} FROM r,"  # noqa: S608
        " jsonb_populate_recordset(NULL::runs_runstep, %s::jsonb) v"
        ' WHERE s.run_id = r.id AND s."index" = v."index"',
        *_adapted(write.assignments.params),
        orjson.dumps(write.rows).decode(),
    )


def write_in_sequence(writes: Writes) -> int | None:
    """Write with one statement after the other, in the caller's transaction or one of its own;
    return the run's last seq, or None.
    """
    with transaction.atomic():
        last_seq = _write_run(writes)
        if last_seq is None:
            return None
        start = writes.call_start
        if start is not None:
            start.is_written = all_hold(start.preconditions)
        for write in writes.others:
            if isinstance(write, InsertRows):
                _insert(write, last_seq, with_call=start is not None and start.is_written)
            else:
                for statement in _statements(write):
                    _execute_with_run(statement, writes)
    return last_seq


def _write_run(writes: Writes) -> int | None:
    if not all_hold(writes.preconditions):
        return None
    if isinstance(writes.run, InsertRows):
        _insert(writes.run, 0, with_call=False)
        return 0
    assignments, condition = writes.run
    where, params = condition.text, [*assignments.params, *condition.params]
    if writes.free_slot is not None:
        where += f" AND EXISTS ({writes.free_slot.text})"
        params += writes.free_slot.params
    text = f"UPDATE runs_run SET {assignments.text} WHERE {where} RETURNING last_seq"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(text, _adapted(params))
        rows = cursor.fetchall()
    return int(rows[0][0]) if rows else None


def _insert(write: InsertRows, last_seq: int, *, with_call: bool) -> None:
    rows: list[Any] = [*write.rows, *(write.rows_of_call if with_call else ())]
    if write.follow_last_seq:
        for row in rows:
            row.seq += last_seq
    if rows:
        type(rows[0]).objects.bulk_create(rows)


def _statements(write: Sql | UpdateSteps) -> list[Sql]:
    if isinstance(write, Sql):
        return [write]
    own = [{name: row[name] for name in row if name != "index"} for row in write.rows]
    return [
        Sql(
            f"UPDATE runs_runstep AS s SET {write.assignments.text}"  # noqa: S608
            + "".join(f", {column} = %s" for column in columns)
            + ' WHERE s.run_id = (SELECT id FROM r) AND s."index" = %s',
            (*write.assignments.params, *columns.values(), row["index"]),
        )
        for columns, row in zip(own, write.rows, strict=True)
    ]


def _execute_with_run(statement: Sql, writes: Writes) -> None:
    known = "r AS (SELECT id, last_seq, status FROM runs_run WHERE id = %s)"
    params: list[Any] = [writes.run_id]
    if (free := writes.free_slot) is not None:
        known += f", free AS ({free.text} ORDER BY number LIMIT 1)"
        params += free.params
    with connection.cursor() as cursor:
        cursor.execute(f"WITH {known} {statement.text}", _adapted([*params, *statement.params]))


def _adapted(params: Sequence[Any]) -> list[Any]:
    """Return the parameters as both drivers take them."""
    return [_adapt(value) for value in params]


def _adapt(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value  # psycopg would send the member's name
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    return orjson.dumps(value).decode() if isinstance(value, dict | list) else value
