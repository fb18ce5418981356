"""What a transition writes, described once for both databases; `runs.lifecycle.writers` writes it.

The texts of SQL are the same on PostgreSQL and SQLite. In all of them but the first, `r` is the
run's row as the transition left it (id, last_seq, status); it has no row where the transition's
guard held none. `free` is the number of the slot that the run takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Model

from artifacts.services import artifact_rows, expiry_of
from decisions.audit.record import entry_for
from decisions.foundation.infra.preconditions import Precondition
from decisions.identity.authority import subscribers_of
from runs.lifecycle.changes import CallStart, NewEvent, Plus, StepChange, Transition
from runs.lifecycle.step_rows import new_rows
from runs.models import (
    UNFINISHED,
    DeliveryStatus,
    Run,
    RunEvent,
    RunStep,
    RunTerms,
    StepStatus,
    delivery_id,
)
from runs.search.terms import error_columns, error_terms, terms_of

OF_RUN = "run_id = (SELECT id FROM r)"


@dataclass(frozen=True, slots=True)
class Sql:
    """A statement, or a part of one, with its parameters in order."""

    text: str
    params: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class InsertRows:
    """Inserts rows of one model.

    Attributes:
        rows_of_call: rows that are inserted after `rows` if the transition's call starts.
        follow_last_seq: the rows' `seq` is relative to the run's last seq: 0 is the last one.
    """

    rows: Sequence[Model]
    rows_of_call: Sequence[Model] = ()
    follow_last_seq: bool = False


@dataclass(frozen=True, slots=True)
class UpdateSteps:
    """Updates steps of the run.

    Attributes:
        assignments: the columns that are set alike in all of them; `s` is the step.
        rows: for each step its `index` and the other columns to set; all rows have the same.
    """

    assignments: Sql
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Writes:
    """Everything that one transition writes, the run's row first.

    Attributes:
        run: the new run, or the columns to set and the condition that its row must meet.
        free_slot: selects the slot that the run takes; without one nothing is written.
        call_start: the call whose rows are inserted if its preconditions hold.
        preconditions: of a new run: nothing is written if one does not hold.
    """

    run_id: str
    run: InsertRows | tuple[Sql, Sql]
    others: Sequence[Sql | InsertRows | UpdateSteps]
    free_slot: Sql | None = None
    call_start: CallStart | None = None
    preconditions: Sequence[Precondition] = ()


def writes_of_new_run(
    run: Run,
    steps: Sequence[RunStep],
    event: NewEvent,
    others: Sequence[Model],
    preconditions: Sequence[Precondition],
) -> Writes:
    """Return what a submit writes."""
    first = RunEvent(run_id=run.id, seq=1, type=event.type, at=run.created_at, data=event.data)
    terms = RunTerms(run_id=run.id, terms=terms_of(run))
    groups: list[Sequence[Model]] = [steps, [first], [terms], *([row] for row in others)]
    inserts = [InsertRows(rows) for rows in groups if rows]
    return Writes(run.id, InsertRows([run]), inserts, preconditions=preconditions)


def writes_of(change: Transition, now: datetime) -> Writes:
    """Return what a transition writes."""
    starts = (step.call_start for step in change.steps)
    start = next((start for start in starts if start is not None), None)
    others = [
        *_resources(change),
        *_terms(change),
        *_events(change, now),
        *_steps(change, now),
        *_artifacts(change, now),
        *_deliveries(change, now),
        *_calls(change, start),
    ]
    run = _assignments(change, now), _condition(change)
    return Writes(change.run.id, run, others, _free_slot(change), start)


def _assignments(change: Transition, now: datetime) -> Sql:
    # A clock that was set back does not set the time back.
    later = "CASE WHEN updated_at > %s THEN updated_at ELSE %s END"
    texts = ["last_seq = last_seq + %s", f"updated_at = {later}"]
    params: list[Any] = [len(change.events), now, now]
    for name, value in {**change.values, **_error_columns(change)}.items():
        adds = isinstance(value, Plus)
        texts.append(f"{name} = {name} + %s" if adds else f"{name} = %s")
        params.append(value.amount if adds else value)
    return Sql(", ".join(texts), tuple(params))


def _error_columns(change: Transition) -> dict[str, str]:
    """Return the columns of a run's error beside the error itself."""
    error = change.values.get("error")
    return error_columns(error, change.run.subject or "") if error else {}


def _terms(change: Transition) -> Iterator[Sql]:
    """Yield the write of the terms by which a run is found by its error."""
    if columns := _error_columns(change):
        code, cause, site = (columns[f"error_{name}"] for name in ("code", "cause", "site"))
        terms = error_terms(code, cause, site)
        yield Sql(
            f"UPDATE runs_runterms SET terms = terms || %s WHERE {OF_RUN}",  # noqa: S608
            ("".join(f" {term}" for term in terms),),
        )


def _condition(change: Transition) -> Sql:
    texts, params = ["id = %s"], [change.run.id]
    for name, value in change.guard.items():
        texts.append(f"{name} IS NULL" if value is None else f"{name} = %s")
        params += [] if value is None else [value]
    return Sql(" AND ".join(texts), tuple(params))


def _free_slot(change: Transition) -> Sql | None:
    if not change.take_slot:
        return None
    return Sql(
        "SELECT number FROM runs_slot WHERE run_id IS NULL AND number < %s",
        (settings.MAX_CONCURRENT_RUNS,),
    )


def _resources(change: Transition) -> Iterator[Sql]:
    if change.take_slot:
        yield Sql(
            "UPDATE runs_slot SET run_id = (SELECT id FROM r), workspace_id = %s, worker_id = %s,"
            " epoch = %s WHERE number = (SELECT number FROM free) AND EXISTS (SELECT 1 FROM r)",
            (change.run.workspace_id, change.worker_id, change.epoch),
        )
    if change.free_slot:
        columns = "run_id = NULL, workspace_id = NULL, worker_id = NULL"
        text = f"UPDATE runs_slot SET {columns} WHERE {OF_RUN} AND epoch = %s"  # noqa: S608
        yield Sql(text, (change.epoch,))
    if change.delete_secrets:
        yield Sql(f"DELETE FROM runs_runsecret WHERE {OF_RUN}")  # noqa: S608


def _events(change: Transition, now: datetime) -> Iterator[InsertRows]:
    rows = [
        RunEvent(run_id=change.run.id, seq=seq, type=event.type, at=now, data=dict(event.data))
        for seq, event in enumerate(change.events, start=1 - len(change.events))
    ]
    if rows:
        yield InsertRows(rows, follow_last_seq=True)


def _steps(change: Transition, now: datetime) -> Iterator[InsertRows | UpdateSteps]:
    if appended := new_rows(change, now):
        yield InsertRows(appended)
    known = [step for step in change.steps if step.new is None]
    epoch = change.epoch
    if started := [_row(step) for step in known if step.status == StepStatus.STARTED]:
        text = "epoch = %s, owner = %s, started_at = %s, attempts = s.attempts + 1"
        yield UpdateSteps(Sql(text, (epoch, change.worker_id, now)), started)
    if paused := [
        _row(step, paused=step.paused) for step in known if step.status == StepStatus.PENDING
    ]:
        yield UpdateSteps(Sql("epoch = %s", (epoch,)), paused)
    if ended := [
        _row(step, output=step.output, error=step.error)
        for step in known
        if step.status not in UNFINISHED
    ]:
        yield UpdateSteps(Sql("epoch = %s, ended_at = %s", (epoch, now)), ended)


def _row(step: StepChange, **columns: Any) -> dict[str, Any]:
    return {"index": step.index, "status": step.status, **columns}


def _artifacts(change: Transition, now: datetime) -> Iterator[Sql | InsertRows]:
    run = change.run
    if change.ended:
        # With the owner: a worker of an older version stored none.
        values = "expires_at = %s, trust = %s, principal_id = %s, user_id = %s"
        text = f"UPDATE artifacts_artifact SET {values} WHERE {OF_RUN}"  # noqa: S608
        yield Sql(text, (expiry_of(now), run.trust, run.principal_id, run.user_id))
    rows = artifact_rows(
        change.blobs,
        owner=run,
        run_id=run.id,
        ended_at=now if change.ended else None,
    )
    if rows:
        yield InsertRows(rows)


def _deliveries(change: Transition, now: datetime) -> Iterator[Sql]:
    """Yield the insert of a delivery for each webhook that receives the end of this run, or its
    question.
    """
    run = change.run
    if (change.values.get("waiting_for") or {}).get("type") == "answer":
        yield _deliveries_of_question(run, now)
    if change.ended:
        is_sent_to, params = subscribers_of(run)
        yield Sql(
            "INSERT INTO runs_webhookdelivery (id, webhook_id, run_id, event, status, attempts,"  # noqa: S608
            " epoch, next_try_at, created_at, error)"
            " SELECT %s || substr(w.id, 6), w.id, r.id, 'run.' || r.status, %s, 0, 0, %s, %s, ''"
            " FROM r CROSS JOIN runs_webhook w WHERE w.workspace_id = %s"
            " AND w.disabled_at IS NULL"
            f" AND (w.every_run AND {is_sent_to} OR w.id = %s)",
            (
                delivery_id(run.id, "hook_"),  # followed by the rest of the webhook's id
                DeliveryStatus.PENDING,
                now,
                now,
                run.workspace_id,
                *params,
                run.options.get("webhookId"),
            ),
        )


def _deliveries_of_question(run: Run, now: datetime) -> Sql:
    """Return the insert for each webhook that receives questions. The run's last event has it."""
    is_sent_to, params = subscribers_of(run)
    return Sql(
        "INSERT INTO runs_webhookdelivery (id, webhook_id, run_id, event_seq, event, status,"  # noqa: S608
        " attempts, epoch, next_try_at, created_at, error)"
        " SELECT %s || 'w' || r.last_seq || '_' || substr(w.id, 6), w.id, r.id, r.last_seq,"
        " 'run.waiting', %s, 0, 0, %s, %s, ''"
        " FROM r CROSS JOIN runs_webhook w WHERE w.tells_questions AND w.disabled_at IS NULL"
        f" AND {is_sent_to}",
        (
            delivery_id(run.id, "").removesuffix("_"),
            DeliveryStatus.PENDING,
            now,
            now,
            *params,
        ),
    )


def _calls(change: Transition, start: CallStart | None) -> Iterator[Sql | InsertRows]:
    if change.finished_calls:
        ids = ", ".join(["%s"] * len(change.finished_calls))
        text = f"DELETE FROM runs_opencall WHERE {OF_RUN} AND id IN ({ids})"  # noqa: S608
        yield Sql(text, tuple(change.finished_calls))
    if start is not None:
        yield InsertRows([], rows_of_call=[start.row])
    entries = [entry_for(event) for event in change.audit_events]
    if entries or start is not None:
        yield InsertRows(entries, rows_of_call=[] if start is None else [start.entry])
