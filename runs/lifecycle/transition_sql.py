"""Write a transition as one PostgreSQL statement: one round trip, one plan, one commit.

The statement is a WITH query. Every part joins `r`, the run's guarded update: if that changes no
row, nothing is written. A part that the transition does not need is left out.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any

import orjson
from django.conf import settings

from artifacts.services import artifact_rows
from decisions.audit.record import entry_for
from decisions.infra.prepared_statements import SqlStatement
from decisions.models import AuditEntry
from runs.lifecycle.changes import Plus, Transition
from runs.lifecycle.in_flight_calls import CallStart
from runs.lifecycle.step_rows import new_rows
from runs.models import UNFINISHED, DeliveryStatus, Run, RunEvent, RunStep, StepStatus

_JSON_COLUMNS = frozenset({"result", "error", "warnings", "next_actions", "options", "waiting_for"})


def apply(change: Transition, now: datetime) -> int | None:
    """Write the transition; return the run's last seq, or None where its guard held no row."""
    statement = SqlStatement()
    if change.take_slot:
        statement.add(
            "free",
            "SELECT number FROM runs_slot WHERE run_id IS NULL AND number < %s"
            " ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED",
            settings.MAX_CONCURRENT_RUNS,
        )
    _run(statement, change, now)
    _resources(statement, change)
    _events(statement, change, now)
    _steps(statement, change, now)
    _artifacts(statement, change, now)
    if change.ended:
        _webhooks(statement, now)
    if change.finished_calls:
        closed = "DELETE FROM runs_opencall o USING r WHERE o.run_id = r.id AND o.id = ANY(%s)"
        statement.add("closed", closed, list(change.finished_calls))
    call_start = _call_start(statement, change)
    _audit(statement, [entry_for(event) for event in change.audit_events], call_start)
    is_written = "EXISTS (SELECT 1 FROM may)" if call_start is not None else "false"
    row = statement.run(f"SELECT last_seq, {is_written} FROM r")  # noqa: S608
    if row is None:
        return None
    if call_start is not None:
        call_start.is_written = bool(row[1])
    return int(row[0])


def _run(statement: SqlStatement, change: Transition, now: datetime) -> None:
    sets = ["last_seq = last_seq + %s", "updated_at = GREATEST(updated_at, %s)"]
    params: list[Any] = [len(change.events), now]
    for name, value in change.values.items():
        if isinstance(value, Plus):
            sets.append(f"{name} = {name} + %s")
            params.append(value.amount)
        elif name in _JSON_COLUMNS:
            sets.append(f"{name} = %s::jsonb")
            params.append(None if value is None else _json(value))
        else:
            sets.append(f"{name} = %s")
            params.append(_plain(value))
    wheres = ["id = %s"]
    params.append(change.run.id)
    for name, value in change.guard.items():
        wheres.append(f"{name} IS NULL" if value is None else f"{name} = %s")
        params += [] if value is None else [_plain(value)]
    if change.take_slot:
        wheres.append("EXISTS (SELECT 1 FROM free)")
    statement.add(
        "r",
        f"UPDATE runs_run SET {', '.join(sets)} WHERE {' AND '.join(wheres)}"  # noqa: S608
        " RETURNING id, last_seq, status",
        *params,
    )


def _resources(statement: SqlStatement, change: Transition) -> None:
    if change.take_slot:
        statement.add(
            "taken",
            "UPDATE runs_slot s SET run_id = r.id, workspace_id = %s, worker_id = %s, epoch = %s"
            " FROM r, free WHERE s.number = free.number",
            change.run.workspace_id,
            change.worker_id,
            change.epoch,
        )
    if change.free_slot:
        statement.add(
            "freed",
            "UPDATE runs_slot s SET run_id = NULL, workspace_id = NULL, worker_id = NULL"
            " FROM r WHERE s.run_id = r.id AND s.epoch = %s",
            change.epoch,
        )
    if change.delete_secrets:
        statement.add("secrets", "DELETE FROM runs_runsecret s USING r WHERE s.run_id = r.id")


def _events(statement: SqlStatement, change: Transition, now: datetime) -> None:
    if change.events:
        statement.add(
            "events",
            "INSERT INTO runs_runevent (run_id, seq, type, at, data)"
            " SELECT r.id, r.last_seq - %s + v.nth, v.type, %s, v.data FROM r,"
            " ROWS FROM (jsonb_to_recordset(%s::jsonb) AS (type text, data jsonb))"
            " WITH ORDINALITY AS v(type, data, nth)",
            len(change.events),
            now,
            _json([{"type": event.type, "data": event.data} for event in change.events]),
        )


def _steps(statement: SqlStatement, change: Transition, now: datetime) -> None:
    if appended := new_rows(change, now):
        statement.insert("appended", appended)
    known = [step for step in change.steps if step.new is None]
    started = [step.index for step in known if step.status == StepStatus.STARTED]
    ended = [
        {"i": step.index, "status": step.status, "output": step.output, "error": step.error}
        for step in known
        if step.status not in UNFINISHED
    ]
    pending = [step for step in known if step.status == StepStatus.PENDING]
    paused = [{"i": step.index, "paused": step.paused} for step in pending]
    if started:
        statement.add(
            "started",
            "UPDATE runs_runstep s SET status = %s, epoch = %s, owner = %s, started_at = %s,"
            " attempts = s.attempts + 1 FROM r WHERE s.run_id = r.id AND s.index = ANY(%s)",
            StepStatus.STARTED.value,
            change.epoch,
            change.worker_id,
            now,
            started,
        )
    if paused:
        statement.add(
            "paused",
            "UPDATE runs_runstep s SET status = %s, epoch = %s, paused = NULLIF(v.paused, 'null')"
            " FROM r, jsonb_to_recordset(%s::jsonb) AS v(i int, paused jsonb)"
            " WHERE s.run_id = r.id AND s.index = v.i",
            StepStatus.PENDING.value,
            change.epoch,
            _json(paused),
        )
    if ended:
        statement.add(
            "ended",
            "UPDATE runs_runstep s SET status = v.status, epoch = %s, ended_at = %s,"
            " output = NULLIF(v.output, 'null'), error = NULLIF(v.error, 'null') FROM r,"
            " jsonb_to_recordset(%s::jsonb) AS v(i int, status text, output jsonb, error jsonb)"
            " WHERE s.run_id = r.id AND s.index = v.i",
            change.epoch,
            now,
            _json(ended),
        )


def _artifacts(statement: SqlStatement, change: Transition, now: datetime) -> None:
    run = change.run
    rows = artifact_rows(
        change.blobs,
        tenant_id=run.tenant_id,
        workspace_id=run.workspace_id,
        run_id=run.id,
        ended_at=now if change.ended else None,
    )
    if rows:
        statement.insert("artifacts", rows)
    if change.ended:
        statement.add(
            "expiring",
            "UPDATE artifacts_artifact a SET expires_at = %s::timestamptz + %s * interval '1 ms'"
            " FROM r WHERE a.run_id = r.id",
            now,
            settings.ARTIFACT_TTL_MS,
        )


def _webhooks(statement: SqlStatement, now: datetime) -> None:
    """Insert a delivery for every webhook of the run; `id` is built as `delivery_id` does."""
    statement.add(
        "deliveries",
        "INSERT INTO runs_webhookdelivery (id, webhook_id, run_id, event, status, attempts, epoch,"
        " next_try_at, created_at, error) SELECT 'msg_' || substr(r.id, strpos(r.id, '_') + 1)"
        " || '_' || substr(w.id, strpos(w.id, '_') + 1), w.id, r.id, 'run.' || r.status,"
        " %s, 0, 0, %s, %s, ''"
        " FROM r JOIN runs_run u ON u.id = r.id JOIN runs_webhook w"
        " ON w.workspace_id = u.workspace_id AND w.disabled_at IS NULL"
        " AND (w.every_run OR w.id = u.options ->> 'webhookId')",
        DeliveryStatus.PENDING.value,
        now,
        now,
    )


def _call_start(statement: SqlStatement, change: Transition) -> CallStart | None:
    """Insert the call that starts with a step of this transition, if its preconditions hold."""
    starts = (step.call_start for step in change.steps)
    start = next((start for start in starts if start is not None), None)
    if start is not None:
        wheres = " AND ".join(known.sql for known in start.preconditions)
        params = [param for known in start.preconditions for param in known.params]
        statement.add("may", f"SELECT r.id FROM r WHERE {wheres}", *params)  # noqa: S608
        statement.insert("opened", [start.row], source="may")
    return start


def _audit(statement: SqlStatement, entries: list[AuditEntry], start: CallStart | None) -> None:
    if entries or start is not None:
        statement.insert("audited", entries, last=start.entry if start is not None else None)


def insert_run(run: Run, steps: list[RunStep], event: RunEvent, entry: AuditEntry) -> None:
    """Insert a new run with its steps, first event and audit row."""
    statement = SqlStatement()
    statement.insert("r", [run], source="(SELECT 1) one")
    statement.parts[0] = statement.parts[0].removesuffix(")") + " RETURNING id)"
    for name, rows in (
        ("s", steps),
        ("e", [event]),
        ("a", [entry]),
    ):
        if rows:
            statement.insert(name, list(rows))
    statement.run("SELECT id FROM r")


def _plain(value: Any) -> Any:
    """Return the text of an enum's member; the driver would send the member's name."""
    return value.value if isinstance(value, Enum) else value


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
