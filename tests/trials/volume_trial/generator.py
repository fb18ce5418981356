"""Fill a PostgreSQL database by COPY: ended runs, each with a step, terms, events and audit rows.

The audit rows have genuine MACs and seals, so that the sealer and `verify_audit` accept them.
"""

from __future__ import annotations

import gc
import itertools
import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Model
from psycopg.types.json import Jsonb

from decisions.audit.chain import ChainHead, head_of_chain, seals_after
from decisions.audit.checkpoints import save_head
from decisions.audit.record import canonical
from decisions.foundation.security.keys import mac
from decisions.identity.principals import Principal, local_principal
from decisions.models import AuditEntry, AuditSeal
from runs.models import Run, RunEvent, RunStep, RunTerms
from runs.queries.totals import fold_totals, repair_totals
from runs.search.terms import error_columns, terms_of

EVENTS_OF_RUN, AUDIT_ROWS_OF_RUN = 10, 4
VISIBLE = 20_000  # of the newest runs, which the API still lists
BATCH = 20_000  # runs
DAYS = 25  # over which the runs are spread; retention deletes none of them
RARE = "wombat"  # a word that 20 runs have
HOSTS = 3_000
SUBJECTS = ("登录 shop-{}.example", "docs-{}.example · 16 pages", "forms-{}.example · email")
STATUSES = ("succeeded",) * 18 + ("failed", "partial_success")
ERROR = {"errorCode": "NAVIGATION_TIMEOUT", "message": "The page did not load in 30 s."}
STEP_COLUMNS = (
    *("run_id", "index", "name", "effect", "effect_key", "input", "output"),
    *("status", "epoch", "attempts", "started_at", "ended_at"),
)
EVENT_COLUMNS = ("run_id", "seq", "type", "at", "data")
AUDIT_COLUMNS = (
    *("id", "mac", "tenant_id", "workspace_id", "action", "actor"),
    *("resource_type", "resource_id", "metadata", "created_at"),
)
SEAL_COLUMNS = ("position", "entry_id", "mac", "prev", "hash")
EVENT_TYPES = ("run.queued", "run.started", *("step.progress",) * 6, "step.succeeded", "run.ended")
ACTIONS = ("run.submitted", "run.started", "tool.called", "run.ended")


@dataclass(frozen=True, slots=True)
class _Generated:
    """One run with its rows in other tables.

    Steps, events and audit rows are lines for COPY: millions of model instances would take long.

    Attributes:
        audit: the MAC of each audit row, and its line without id and MAC.
    """

    run: Run
    terms: RunTerms
    step: str
    events: str
    audit: list[tuple[str, str]]


def fill(runs: int) -> None:
    """Write this many ended runs, the oldest first, and count and seal them."""
    rows = _generate(runs)
    gc.disable()  # nothing of it is a cycle, and it would take a third of the time
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # no trigger counts each row
    head = head_of_chain()
    while batch := list(itertools.islice(rows, BATCH)):
        head = _write(batch, head)
    gc.enable()
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = origin")
        cursor.execute(
            "SELECT setval(pg_get_serial_sequence('decisions_auditentry', 'id'),"
            " (SELECT max(id) FROM decisions_auditentry))"
        )
    repair_totals()
    fold_totals()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def add_expired_runs(runs: int, age: timedelta) -> None:
    """Write runs that ended so long ago, with their rows but no audit rows."""
    made = list(_generate(runs))
    ended_at = datetime.now(UTC) - age
    for one in made:
        one.run.id = one.terms.run_id = f"run_{uuid.uuid4().hex}"
        one.run.session_id = one.run.id
        one.run.ended_at = one.run.hidden_at = ended_at
    Run.objects.bulk_create([one.run for one in made])
    RunTerms.objects.bulk_create([one.terms for one in made])
    _copy_lines(RunStep, STEP_COLUMNS, (_step_line(one.run) for one in made))
    _copy_lines(RunEvent, EVENT_COLUMNS, (_event_lines(one.run) for one in made))


def _generate(number: int) -> Iterator[_Generated]:
    now, apart = datetime.now(UTC), timedelta(days=DAYS) / number
    local = local_principal()  # has half of the runs
    for n in range(number):
        run = _run(n, number, now - apart * (number - n), local)
        yield _Generated(
            run=run,
            terms=RunTerms(run_id=run.id, terms=terms_of(run)),
            step=_step_line(run),
            events=_event_lines(run),
            audit=_audit_lines(run),
        )


def _run(n: int, number: int, at: datetime, local: Principal) -> Run:
    status = STATUSES[n // 2 % len(STATUSES)]  # each workspace has runs of each
    error = ERROR if status == "failed" else None
    subject = SUBJECTS[n % 3].format(n % HOSTS)
    rare = number >= 20 and n % (number // 20) == 7
    return Run(
        id=f"run_{n:012}",
        tenant_id=local.tenant_id,
        workspace_id=local.workspace_id if n % 2 else f"ws_{n % 10}",
        principal_id=f"token:tok_{n % 50}",
        trust="local",
        template_id=("agent_task", "batch_extract_pages", "submit_and_verify")[n % 3],
        template_version="1.0.0",
        mode="async",
        inputs={"urls": ["https://pages.example/1"]},
        session_id=f"sess_{n}",
        status=status,
        ready=False,
        subject=f"{subject} {RARE}" if rare else subject,
        labels={"env": ("prod", "test")[n % 2], "ticket": f"OPS-{n % 10_000}"},
        error=error,
        **error_columns(error),
        result={"summary": {"total": 1}},
        result_summary="read 1 page",
        total_steps=1,
        done_steps=1,
        last_seq=EVENTS_OF_RUN,
        timeout_ms=600_000,
        active_ms=n * 7919 % 100_000,
        created_at=at,
        started_at=at,
        updated_at=at,
        ended_at=at,
        hidden_at=at if n < number - VISIBLE else None,
    )


def _step_line(run: Run) -> str:
    at, url = run.created_at.isoformat(), "https://pages.example/1"
    values = (f"read {url}", "read", f"{run.id}:0", f'{{"url": "{url}"}}', '{"title": "Page 1"}')
    return "\t".join((run.id, "0", *values, "succeeded", "0", "1", at, at)) + "\n"


def _event_lines(run: Run) -> str:
    at = run.created_at.isoformat()
    return "".join(
        f'{run.id}\t{seq}\t{kind}\t{at}\t{{"step": 0}}\n'
        for seq, kind in enumerate(EVENT_TYPES, start=1)
    )


def _audit_lines(run: Run) -> list[tuple[str, str]]:
    """Return the run's audit rows, as old as the run: the MAC and the rest of each."""
    metadata = {"templateId": run.template_id, "tool": "read_page"}
    at = run.created_at.isoformat(timespec="microseconds")
    lines = []
    for action in ACTIONS:
        columns = (run.tenant_id, run.workspace_id, action, run.principal_id, "run", run.id)
        digest = mac("audit", canonical(*columns, metadata=metadata, created_at=at))
        lines.append((digest, "\t".join((*columns, json.dumps(metadata), at))))
    return lines


def _write(batch: Sequence[_Generated], head: ChainHead) -> ChainHead:
    entries = list(enumerate((e for one in batch for e in one.audit), start=head.position + 1))
    seals = seals_after(head, ((entry_id, digest) for entry_id, (digest, _) in entries))
    copy_rows(Run, (one.run for one in batch))
    copy_rows(RunTerms, (one.terms for one in batch))
    _copy_lines(RunStep, STEP_COLUMNS, (one.step for one in batch))
    _copy_lines(RunEvent, EVENT_COLUMNS, (one.events for one in batch))
    rows = (f"{entry_id}\t{digest}\t{rest}\n" for entry_id, (digest, rest) in entries)
    _copy_lines(AuditEntry, AUDIT_COLUMNS, rows)
    links = ("\t".join(str(getattr(seal, name)) for name in SEAL_COLUMNS) for seal in seals)
    _copy_lines(AuditSeal, SEAL_COLUMNS, (f"{link}\n" for link in links))
    head = ChainHead(seals[-1].position, seals[-1].hash)
    save_head(head, next_id=entries[-1][0] + 1)
    return head


def copy_rows(model: type[Model], rows: Iterable[Model]) -> None:
    """Insert rows by COPY; a key that the database assigns may be missing in all of them."""
    rows = iter(rows)
    first = next(rows)
    fields: list[Any] = [
        field for field in model._meta.concrete_fields if first.pk or not field.primary_key
    ]
    is_json = [field.get_internal_type() == "JSONField" for field in fields]
    columns = [field.column for field in fields]
    _copy(
        model._meta.db_table,
        columns,
        (
            [
                Jsonb(value) if json and value is not None else value
                for json, value in zip(
                    is_json, (getattr(row, field.attname) for field in fields), strict=True
                )
            ]
            for row in itertools.chain([first], rows)
        ),
    )


def _copy(table: str, columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> None:
    with _copying(table, columns) as copy:
        for row in rows:
            copy.write_row(row)


def _copy_lines(model: type[Model], columns: Iterable[str], lines: Iterable[str]) -> None:
    with _copying(model._meta.db_table, columns) as copy:
        copy.write("".join(lines))  # of one batch


@contextmanager
def _copying(table: str, columns: Iterable[str]) -> Iterator[Any]:
    quoted = ", ".join(f'"{column}"' for column in columns)
    connection.ensure_connection()
    with (
        connection.connection.cursor() as cursor,
        cursor.copy(f'COPY "{table}" ({quoted}) FROM STDIN') as copy,
    ):
        yield copy
