"""An idle installation asks the database little: statements per second with ten workers."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection
from django.test.utils import CaptureQueriesContext

from decisions.audit import sealer
from decisions.audit.record import AuditEvent, record
from decisions.audit.sealer import Sealer
from decisions.foundation.infra.staleness import ChangeWatch
from runs.scheduler.jobs import Scheduler
from runs.webhooks import deliverer, deliveries
from runs.worker.worker import WorkerProcess

WORKERS = 10
LIMIT = 15.0  # statements per second


def statements(call: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as queries:
        call()
    return len(queries)


def test_an_idle_installation_with_ten_workers_makes_few_statements(worker: WorkerProcess) -> None:
    record(AuditEvent("idle.test", "test", "test", "1", "t", "w"))
    scheduler, sealing = Scheduler(), Sealer()
    jobs = scheduler._jobs()
    for _ in range(3):
        sealing.seal_all()
        for _, job in jobs:
            scheduler._run_job(job)
    sealing._recent_due = 0.0
    of_full_pass, of_pass = statements(sealing.seal_all), statements(sealing.seal_all)
    assert of_pass == 1

    def poll() -> None:
        worker._woken_at = 0.0
        worker._poll()

    per_second = {
        "workers": WORKERS
        * (
            statements(worker.heartbeat.beat) / 5.0  # LEASE_BEAT_S; these tests set another one
            + statements(poll) / 10.0  # POLL_S
        ),
        "jobs": sum(statements(lambda job=job: scheduler._run_job(job)) / s for s, job in jobs),  # type: ignore[misc]
        "sealer": of_pass / sealer.POLL_EVERY_S + of_full_pass / sealer.RECENT_EVERY_S,
        "deliverer": statements(lambda: deliveries.claim_due_deliveries(limit=1)) / deliverer.POLL_S
        + statements(lambda: deliveries.release_lost(ChangeWatch())) / deliverer.RELEASE_EVERY_S,
    }
    assert sum(per_second.values()) <= LIMIT, per_second
