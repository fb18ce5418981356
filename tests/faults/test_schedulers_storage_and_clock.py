"""Several schedulers, a storage that is unavailable, a clock that jumps, and many concurrent
writers."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.db import connection

from artifacts.models import Artifact
from decisions.identity.principals import local_principal
from decisions.models import AuditEntry
from runs.models import Run, RunEvent, RunStep
from runs.submission.retry import retry_run
from tests.faults.installation import ROOT, FaultInstallation
from tests.support.runs.worker_rows import error_of

WRITERS, RUNS_EACH = 8, 10
WRITE = f"""
import django; django.setup()
from decisions.identity.principals import local_principal
from runs.submission.cancel import cancel_run
from runs.submission.submit import submit_run
caller = local_principal()
for number in range({RUNS_EACH}):
    submitted = submit_run(principal=caller, template_id="test_stepwise", inputs={{"do": ["ok"]}},
                           options={{"mode": "async", "idempotencyKey": f"key {{number}}"}})
    if number % 5 == 0:
        cancel_run(principal=caller, run_id=submitted.run_id)
"""


@pytest.mark.slow
def test_three_schedulers_record_a_lost_worker_once(
    installation: FaultInstallation, tmp_path: Path
) -> None:
    for _ in range(3):
        installation.start("scheduler")
    (worker,) = installation.workers(1)
    run_id = installation.submit("ok", f"until:{tmp_path / 'gate'}")
    installation.wait_until(lambda: RunStep.objects.filter(index=1, status="started").exists())
    worker.kill()
    (tmp_path / "gate").touch()
    installation.workers(1)
    run = installation.wait_for_end(run_id)
    assert (run.status, run.times_lost) == ("succeeded", 1)
    assert AuditEntry.objects.filter(action="run.worker_lost").count() == 1
    installation.check_invariants()


def test_an_unavailable_storage_fails_the_run_and_a_retry_resumes_it(
    installation: FaultInstallation, tmp_path: Path
) -> None:
    installation.start("scheduler")
    installation.workers(1)
    assert installation.wait_for_end(installation.submit()).status == "succeeded"
    storage = installation.home / "artifacts"
    moved = storage.rename(installation.home / "moved")
    storage.write_text("not a directory")
    run_id = installation.submit(f"touch:{tmp_path / 'mark'}", effect="once")
    run = installation.wait_for_end(run_id)
    assert (run.status, error_of(run)["details"]["causeCode"]) == ("failed", "STORAGE")
    assert str(installation.home) not in str(run.error)
    storage.unlink()
    moved.rename(storage)
    again = retry_run(principal=local_principal(), run_id=run_id)
    assert installation.wait_for_end(again.run_id).status == "succeeded"
    assert (tmp_path / "mark").read_text() == "x"
    assert Artifact.objects.filter(run_id=again.run_id).count() == 1
    installation.check_invariants()


@pytest.mark.slow
def test_eight_processes_submit_and_cancel_concurrently(installation: FaultInstallation) -> None:
    """The processes use the same idempotency keys, so each key creates one run."""
    installation.start("scheduler")
    installation.workers(2)
    env = {**installation.env, "PYTHONPATH": str(ROOT)}
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITE], env=env, cwd=ROOT) for _ in range(WRITERS)
    ]
    assert [writer.wait(170) for writer in writers] == [0] * WRITERS
    assert Run.objects.count() == RUNS_EACH
    installation.wait_until(lambda: not Run.objects.filter(ended_at__isnull=True).exists())
    statuses = set(Run.objects.values_list("status", flat=True))
    assert statuses <= {"succeeded", "canceled"}
    installation.check_invariants()


@pytest.mark.soak
@pytest.mark.parametrize(
    ("worker_s", "scheduler_s"), [(600, 0), (-600, 0), (0, 600), (0, -600), (600, -600)]
)
def test_a_jump_of_the_clock_ends_no_lease_and_loses_no_run(
    installation: FaultInstallation, worker_s: int, scheduler_s: int
) -> None:
    modules = installation.env["CONTINUITY_TEMPLATE_MODULES"] + ",tests.faults.skewed_clock"
    installation.env["CONTINUITY_TEMPLATE_MODULES"] = modules
    installation.start("scheduler")
    (worker,) = installation.workers(1)
    running = installation.submit("ok", "sleep:3", "ok")
    installation.wait_until(lambda: RunStep.objects.filter(index=1, status="started").exists())
    (installation.home / "clock-worker").write_text(str(worker_s))
    (installation.home / "clock-scheduler").write_text(str(scheduler_s))
    queued = [installation.submit() for _ in range(10)]
    runs = [installation.wait_for_end(run_id) for run_id in (running, *queued)]
    assert {(run.status, run.times_lost) for run in runs} == {("succeeded", 0)}
    lost = installation.submit("ok", "sleep:2")
    installation.wait_until(
        lambda: RunStep.objects.filter(run_id=lost, index=1, status="started").exists()
    )
    worker.kill()
    installation.workers(1)
    assert installation.wait_for_end(lost).times_lost == 1
    for run in Run.objects.all():
        assert run.updated_at >= run.created_at
        times = list(RunEvent.objects.filter(run=run).order_by("seq").values_list("at", flat=True))
        assert len(times) == run.last_seq
    installation.check_invariants()


@pytest.mark.soak
def test_a_hundred_kills_in_a_row_lose_no_run(
    installation: FaultInstallation, tmp_path: Path
) -> None:
    """The test kills workers at random while it submits runs; every run ends and every mark is
    there."""
    installation.start("scheduler")
    installation.start("scheduler")
    ids = []
    for round_ in range(12):
        (worker,) = installation.workers(1)
        for number in range(6):
            mark = tmp_path / f"{round_}-{number}"
            ids.append(installation.submit("ok", f"touch:{mark}", "sleep:0.3", "ok"))
        time.sleep(0.25 * (round_ % 5))
        worker.kill()
    installation.workers(2)
    runs = [installation.wait_for_end(run_id, 120) for run_id in ids]
    assert {run.status for run in runs} <= {"succeeded", "failed"}
    assert {error_of(run)["details"]["causeCode"] for run in runs if run.error} <= {"WORKER_LOST"}
    assert len(list(tmp_path.iterdir())) >= sum(run.status == "succeeded" for run in runs)
    connection.close()
    installation.check_invariants()
