"""A worker is killed at each moment of a run's life, and another worker resumes the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from django.test import override_settings

from artifacts.models import Artifact
from decisions.identity.principals import local_principal
from decisions.models import AuditEntry
from runs.models import Run, RunStep
from runs.submission.services import cancel_run, submit_run
from tests.faults.world import ROOT, Process, World
from tests.integration.workers import error_of

# The moment, and whether the first step's mark is written twice: the step was executed, but its
# end was not recorded.
MOMENTS = {
    "before_claim": False,
    "after_claim": False,
    "step_started": False,
    "step_over": True,
    "before_ending": False,
    "after_ending": False,
}
SUBMIT = """
import django; django.setup()
from decisions.identity.principals import local_principal
from runs.submission.services import submit_run
submit_run(principal=local_principal(), template_id="test_stepwise", inputs={"do": ["ok"]},
           options={"mode": "async", "idempotencyKey": KEY})
"""


def has_lost(run_id: str, times: int) -> bool:
    return Run.objects.filter(id=run_id, times_lost=times).exists()


def killed(processes: list[Process]) -> list[Process]:
    return [process for process in processes if not process.runs]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_survives_its_worker(world: World, tmp_path: Path, moment: str) -> None:
    world.start("scheduler")
    workers = world.workers(2)
    world.arm(moment)
    run = world.ended(world.submit(f"touch:{tmp_path / 'mark'}", "ok"))
    assert world.was_hit(moment)
    world.until(lambda: killed(workers))
    assert [process.wait(5) for process in killed(workers)] == [-9]
    assert run.status == "succeeded"
    assert (tmp_path / "mark").read_text() == ("xx" if MOMENTS[moment] else "x")
    assert run.times_lost == (moment not in ("before_claim", "after_ending"))
    world.check()


@pytest.mark.parametrize("moment", ["step_started", "step_over"])
def test_a_once_step_is_never_repeated(world: World, tmp_path: Path, moment: str) -> None:
    world.start("scheduler")
    world.workers(2)
    world.arm(moment)
    run = world.ended(world.submit(f"touch:{tmp_path / 'mark'}", "ok", effect="once"))
    step = RunStep.objects.get(run=run, index=0)
    assert world.was_hit(moment)
    assert (step.status, step.attempts) == ("failed", 1)
    assert error_of(step)["details"]["effect"] == "unknown"
    assert (tmp_path / "mark").exists() == (moment == "step_over")
    assert run.status == "partial_success"
    world.check()


def test_a_call_whose_worker_was_killed_is_recorded_as_ended_once(
    world: World, tmp_path: Path
) -> None:
    world.start("scheduler")
    world.workers(2, CONTINUITY_WORKSPACE=str(tmp_path))
    world.arm("step_over")  # the worker executed the call and recorded nothing of it
    preview = {"path": "new.txt", "content": "a:b;\n", "dryRun": True}
    with override_settings(WORKSPACE=tmp_path):
        call = {"name": "write_to_file", "args": preview}
        run = world.ended(
            submit_run(
                principal=local_principal(),
                template_id="call_tools",
                inputs={"calls": [call]},
                options={"mode": "async"},
            ).run_id
        )
    assert world.was_hit("step_over")
    assert error_of(run)["details"]["effect"] == "unknown"
    rows = AuditEntry.objects.filter(resource_id=run.id, action__startswith="tool.")
    told = [(row.action, row.metadata.get("code")) for row in rows.order_by("id")]
    assert told == [("tool.called", None), ("tool.failed", "WORKER_LOST")]
    world.check()


def test_bytes_stored_without_their_row_are_stored_again(world: World) -> None:
    world.start("scheduler")
    world.workers(2)
    world.arm("blob_kept")
    run = world.ended(world.submit("keep page", template="test_odd"))
    assert world.was_hit("blob_kept")
    assert run.status == "succeeded"
    assert Artifact.objects.filter(run_id=run.id, kind="file").count() == 1
    world.check()


def test_a_run_fails_after_three_lost_workers(world: World, tmp_path: Path) -> None:
    world.start("scheduler")
    run_id = world.submit(f"touch:{tmp_path / 'mark'}")
    for times in (1, 2, 3):
        world.arm("step_started")
        world.start("worker")
        world.until(partial(has_lost, run_id, times))
    run = world.ended(run_id)
    assert (run.status, error_of(run)["details"]["causeCode"]) == ("failed", "WORKER_LOST")
    assert not (tmp_path / "mark").exists()
    world.workers(1)
    world.check()


def test_a_worker_killed_during_a_cancel_leaves_no_slot(world: World) -> None:
    world.start("scheduler")
    (worker,) = world.workers(1)
    run_id = world.submit("sleep:30")
    world.until(lambda: RunStep.objects.filter(run_id=run_id, status="started").exists())
    world.arm("canceled")
    assert cancel_run(principal=local_principal(), run_id=run_id)["success"]
    assert worker.wait(20) == -9
    assert Run.objects.get(id=run_id).status == "canceled"
    world.workers(1)
    world.check()


def test_a_worker_killed_while_it_releases_a_run_costs_one_attempt(world: World) -> None:
    world.start("scheduler")
    (worker,) = world.workers(1)
    run_id = world.submit("ok", "sleep:1.5")
    world.until(lambda: RunStep.objects.filter(run_id=run_id, status="succeeded").exists())
    world.arm("draining")
    worker.send(signal.SIGTERM)
    assert worker.wait(20) == -9
    world.workers(1)
    run = world.ended(run_id)
    assert (run.status, run.times_lost) == ("succeeded", 1)
    assert RunStep.objects.get(run=run, index=0).attempts == 1
    world.check()


@pytest.mark.parametrize("moment", ["before_submit", "before_ring"])
@pytest.mark.parametrize("key", ["'k'", "None"])
def test_a_killed_submit_is_committed_completely_or_not_at_all(
    world: World, moment: str, key: str
) -> None:
    world.start("scheduler")
    world.workers(1)
    world.arm(moment)
    script = (
        SUBMIT.replace("KEY", key)
        if key != "None"
        else SUBMIT.replace(', "idempotencyKey": KEY', "")
    )
    env = {**world.env, "DJANGO_SETTINGS_MODULE": "config.settings", "PYTHONPATH": str(ROOT)}
    died = subprocess.run([sys.executable, "-c", script], env=env, cwd=ROOT, check=False)
    assert died.returncode == -signal.SIGKILL
    assert world.was_hit(moment)
    assert Run.objects.count() == (moment == "before_ring")
    again = world.submit("ok", options={"idempotencyKey": "k"})
    runs = 2 if moment == "before_ring" and key == "None" else 1
    assert Run.objects.count() == runs
    assert world.ended(again).status == "succeeded"
    world.check()


def test_every_worker_killed_at_once_and_started_again(world: World, tmp_path: Path) -> None:
    """As after a restart of the machine: no process saw the others die."""
    scheduler, workers = world.start("scheduler"), world.workers(2)
    ids = [world.submit("ok", "sleep:1", f"touch:{tmp_path / str(n)}") for n in range(8)]
    world.until(lambda: RunStep.objects.filter(status="started").count() >= 5)
    for process in (*workers, scheduler):
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
    time.sleep(0.5)
    world.start("scheduler")
    world.workers(1)
    runs = [world.ended(run_id) for run_id in ids]
    assert {run.status for run in runs} == {"succeeded"}
    assert all((tmp_path / str(n)).read_text() == "x" for n in range(8))
    world.check()
