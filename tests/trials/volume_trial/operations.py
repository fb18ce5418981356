"""The operations that are timed: what callers, workers, the scheduler and people do most."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponse
from django.test import Client

from decisions.audit.query import list_audit_entries
from decisions.audit.record import AuditEvent, record_all
from decisions.audit.sealer import Sealer
from decisions.identity.principals import Principal, local_principal
from runs.journal import writer
from runs.lifecycle.lease import Lease
from runs.models import Run, RunStatus
from runs.queries.run_lists import list_runs
from runs.queries.run_search import RunFilters
from runs.queries.runs import list_events
from runs.queue.leases import claim_run
from runs.queue.slots import ensure_slots
from runs.scheduler.retention import delete_old_runs
from runs.submission.submit import submit_run
from tests.trials.volume_trial.generator import EVENTS_OF_RUN, RARE, add_expired_runs

LARGE_TABLES = (
    "runs_run",
    "runs_runevent",
    "runs_runstep",
    "runs_runterms",
    "decisions_auditentry",
    "decisions_auditseal",
)
WAITING_RUNS, EXPIRED_RUNS, UNSEALED_ROWS = 5, 500, 100


class Operations:
    """The operations on the current database; `prepare` creates the few rows that they need."""

    def __init__(self, expired_runs: int = EXPIRED_RUNS) -> None:
        self._expired_runs = expired_runs  # that each retention deletes
        self._principal: Principal = local_principal()
        self._client = Client()
        self._run_id = ""
        self._leases: list[Lease] = []

    def prepare(self) -> None:
        """Create an operator, slots, runs that wait, and a run with events to look at."""
        ensure_slots()
        user, _ = User.objects.get_or_create(
            username="boss", defaults={"is_superuser": True, "is_staff": True}
        )
        self._client.force_login(user)
        for _ in range(WAITING_RUNS):
            self.submit()
        own = Run.objects.filter(workspace_id=self._principal.workspace_id)
        self._run_id = own.filter(last_seq=EVENTS_OF_RUN).latest("created_at").id
        self.claim()
        self.end()
        Sealer().seal_all()

    def by_name(self) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
        """Return what is done before each operation, untimed, and the operation."""
        filters = RunFilters(query=RARE)
        newest = Run.objects.order_by("-created_at", "-id")
        principal, client = self._principal, self._client
        operations: dict[str, Callable[[], object]] = {
            "submit": self.submit,
            "claim": self.claim,
            "list of runs": lambda: list_runs(principal=principal, limit=50),
            "list of failed runs": lambda: list_runs(
                principal=principal, limit=20, status="failed"
            ),
            "events of a run": lambda: list_events(
                principal=principal, run_id=self._run_id, after=0
            ),
            "search": lambda: list(filters.apply(newest)[:51]),
            "page of a run": lambda: get(client, f"/admin/runs/run/{self._run_id}/change/"),
            "page of runs": lambda: get(client, "/admin/runs/run/"),
            "page of audit rows": lambda: get(client, "/admin/decisions/auditentry/"),
            "audit rows of a workspace": lambda: list_audit_entries(principal=principal),
            "audit rows of an action": lambda: list_audit_entries(
                principal=principal, action="run.ended"
            ),
            "retention": delete_old_runs,
            "start of a sealer": lambda: Sealer().seal_all(),
        }
        before: dict[str, Callable[[], object]] = {
            "claim": self.end,
            "retention": self.expire,
            "start of a sealer": self.leave_unsealed,
        }
        return {name: (before.get(name, no_op), run) for name, run in operations.items()}

    def submit(self) -> str:
        """Submit a run, and return its id."""
        return submit_run(
            principal=self._principal,
            template_id="batch_extract_pages",
            inputs={"urls": ["https://pages.example/1"]},
            options={"mode": "async"},
        ).run_id

    def claim(self) -> None:
        """Claim the next run."""
        lease = claim_run("volume")
        if lease is None:
            raise RuntimeError("no run waits")
        self._leases.append(lease)

    def end(self) -> None:
        """End the claimed runs, and submit one for the next claim."""
        while self._leases:
            ending = writer.Ending(RunStatus.SUCCEEDED, result={})
            writer.write(self._leases.pop(), [], active_ms=1, ending=ending)
        self.submit()

    def expire(self) -> None:
        """Write runs that retention deletes."""
        add_expired_runs(self._expired_runs, timedelta(days=settings.RUN_RETENTION_DAYS + 1))

    def leave_unsealed(self) -> None:
        """Write audit rows that no sealer has sealed."""
        event = AuditEvent("run.started", "worker:volume", "run", self._run_id, "ten", "ws", {})
        record_all([event] * UNSEALED_ROWS)


def get(client: Client, path: str) -> Any:
    """Return a page.

    Raises:
        RuntimeError: The page did not answer with 200.
    """
    response = client.get(path)
    if response.status_code != 200:
        raise RuntimeError(f"{path} answered {response.status_code}")
    return response


def rows_of(answer: Any) -> int:
    """Return how many rows an operation answered with or changed; 1 for what is no list."""
    if isinstance(answer, HttpResponse):
        return answer.content.count(b"<tr")
    if isinstance(answer, dict):
        answer = next(value for value in answer.values() if isinstance(value, list))
    if isinstance(answer, list):
        return len(answer)
    return answer if isinstance(answer, int) else 1


def no_op() -> None:
    """Prepare nothing."""


def sequential_scans() -> dict[str, int]:
    """Return how often PostgreSQL has read each large table from its beginning to its end."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT 1")  # statistics are written when a statement ends
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE relname = ANY(%s)",
            [list(LARGE_TABLES)],
        )
        return dict(cursor.fetchall())


def tables_scanned(operation: Callable[[], object]) -> tuple[list[str], object]:
    """Return the large tables that an operation reads whole, and its answer."""
    before = sequential_scans()
    answer = operation()
    after = sequential_scans()
    return [name for name in LARGE_TABLES if after[name] > before[name]], answer
