"""A worker is killed at each moment of a run's life, and another worker resumes the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from django.test import override_settings

from artifacts.models import Artifact
from decisions.identity.principals import local_principal
from decisions.models import AuditEntry
from runs.models import Run, RunStep
from runs.submission.cancel import cancel_run
from runs.submission.submit import submit_run
from tests.faults.installation import ROOT, FaultInstallation, Process
from tests.support.runs.worker_rows import error_of

# The moment, and whether the first step's mark is written twice: the step was executed, but its
# end was not recorded.
# With each failpoint, whether its step is executed once more.
FAILPOINTS = {
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
from runs.submission.submit import submit_run
submit_run(principal=local_principal(), template_id="test_stepwise", inputs={"do": ["ok"]},
           options={"mode": "async", "idempotencyKey": KEY})
"""


def has_lost_workers(run_id: str, times: int) -> bool:
    return Run.objects.filter(id=run_id, times_lost=times).exists()


def killed(processes: list[Process]) -> list[Process]:
    return [process for process in processes if not process.is_running]


@pytest.mark.parametrize(
    "failpoint_name",
    [
        pytest.param("before_claim", marks=pytest.mark.slow),
        "after_claim",
        pytest.param("step_started", marks=pytest.mark.slow),
        "step_over",
        pytest.param("before_ending", marks=pytest.mark.slow),
        "after_ending",
    ],
)
def test_a_run_survives_its_worker(
    installation: FaultInstallation, tmp_path: Path, failpoint_name: str
) -> None:
    installation.start("scheduler")
    workers = installation.workers(2)
    installation.arm_failpoint(failpoint_name)
    run = installation.wait_for_end(installation.submit(f"touch:{tmp_path / 'mark'}", "ok"))
    installation.wait_until(lambda: installation.failpoint_was_hit(failpoint_name))
    installation.wait_until(lambda: killed(workers))
    assert [process.wait(5) for process in killed(workers)] == [-9]
    assert run.status == "succeeded"
    assert (tmp_path / "mark").read_text() == ("xx" if FAILPOINTS[failpoint_name] else "x")
    assert run.times_lost == (failpoint_name not in ("before_claim", "after_ending"))
    installation.check_invariants()


@pytest.mark.parametrize(
    "failpoint_name", ["step_started", pytest.param("step_over", marks=pytest.mark.slow)]
)
def test_a_once_step_is_never_repeated(
    installation: FaultInstallation, tmp_path: Path, failpoint_name: str
) -> None:
    installation.start("scheduler")
    installation.workers(2)
    installation.arm_failpoint(failpoint_name)
    run = installation.wait_for_end(
        installation.submit(f"touch:{tmp_path / 'mark'}", "ok", effect="once")
    )
    step = RunStep.objects.get(run=run, index=0)
    assert installation.failpoint_was_hit(failpoint_name)
    assert (step.status, step.attempts) == ("failed", 1)
    assert error_of(step)["details"]["effect"] == "unknown"
    assert (tmp_path / "mark").exists() == (failpoint_name == "step_over")
    assert run.status == "partial_success"
    installation.check_invariants()


@pytest.mark.slow
def test_a_call_whose_worker_was_killed_is_recorded_as_ended_once(
    installation: FaultInstallation, tmp_path: Path
) -> None:
    installation.start("scheduler")
    installation.workers(2, CONTINUITY_WORKSPACE=str(tmp_path))
    # The worker executed the call and recorded nothing of it.
    installation.arm_failpoint("step_over")
    preview = {"path": "new.txt", "content": "a:b;\n", "dryRun": True}
    with override_settings(WORKSPACE=tmp_path):
        call = {"name": "write_to_file", "args": preview}
        run = installation.wait_for_end(
            submit_run(
                principal=local_principal(),
                template_id="call_tools",
                inputs={"calls": [call]},
                options={"mode": "async"},
            ).run_id
        )
    assert installation.failpoint_was_hit("step_over")
    assert error_of(run)["details"]["effect"] == "unknown"
    rows = AuditEntry.objects.filter(resource_id=run.id, action__startswith="tool.")
    recorded = [(row.action, row.metadata.get("code")) for row in rows.order_by("id")]
    assert recorded == [("tool.called", None), ("tool.failed", "WORKER_LOST")]
    installation.check_invariants()


@pytest.mark.slow
def test_bytes_stored_without_their_row_are_stored_again(installation: FaultInstallation) -> None:
    installation.start("scheduler")
    installation.workers(2)
    installation.arm_failpoint("blob_kept")
    run = installation.wait_for_end(
        installation.submit("save page", template="test_unusual_values")
    )
    assert installation.failpoint_was_hit("blob_kept")
    assert run.status == "succeeded"
    assert Artifact.objects.filter(run_id=run.id, kind="file").count() == 1
    installation.check_invariants()


@pytest.mark.slow
def test_a_run_fails_after_three_lost_workers(
    installation: FaultInstallation, tmp_path: Path
) -> None:
    installation.start("scheduler")
    run_id = installation.submit(f"touch:{tmp_path / 'mark'}")
    for times in (1, 2, 3):
        installation.arm_failpoint("step_started")
        installation.start("worker")
        installation.wait_until(partial(has_lost_workers, run_id, times))
    run = installation.wait_for_end(run_id)
    assert (run.status, error_of(run)["details"]["causeCode"]) == ("failed", "WORKER_LOST")
    assert not (tmp_path / "mark").exists()
    installation.workers(1)
    installation.check_invariants()


@pytest.mark.slow
def test_a_worker_killed_during_a_cancel_leaves_no_slot(installation: FaultInstallation) -> None:
    installation.start("scheduler")
    (worker,) = installation.workers(1)
    run_id = installation.submit("sleep:30")
    installation.wait_until(
        lambda: RunStep.objects.filter(run_id=run_id, status="started").exists()
    )
    installation.arm_failpoint("canceled")
    assert cancel_run(principal=local_principal(), run_id=run_id)["success"]
    assert worker.wait(20) == -9
    assert Run.objects.get(id=run_id).status == "canceled"
    installation.workers(1)
    installation.check_invariants()


@pytest.mark.slow
def test_a_worker_killed_while_it_releases_a_run_costs_one_attempt(
    installation: FaultInstallation, tmp_path: Path
) -> None:
    installation.start("scheduler")
    (worker,) = installation.workers(1)
    run_id = installation.submit("ok", f"until:{tmp_path / 'gate'}")
    installation.wait_until(
        lambda: RunStep.objects.filter(run_id=run_id, status="succeeded").exists()
    )
    installation.arm_failpoint("draining")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == -9
    (tmp_path / "gate").touch()
    installation.workers(1)
    run = installation.wait_for_end(run_id)
    assert (run.status, run.times_lost) == ("succeeded", 1)
    assert RunStep.objects.get(run=run, index=0).attempts == 1
    installation.check_invariants()


@pytest.mark.parametrize(
    ("failpoint_name", "key"),
    [
        ("before_submit", "'k'"),
        ("before_wakeup", "None"),
        pytest.param("before_submit", "None", marks=pytest.mark.slow),
        pytest.param("before_wakeup", "'k'", marks=pytest.mark.slow),
    ],
)
def test_a_killed_submit_is_committed_completely_or_not_at_all(
    installation: FaultInstallation, failpoint_name: str, key: str
) -> None:
    installation.start("scheduler")
    installation.workers(1)
    installation.arm_failpoint(failpoint_name)
    script = (
        SUBMIT.replace("KEY", key)
        if key != "None"
        else SUBMIT.replace(', "idempotencyKey": KEY', "")
    )
    env = {**installation.env, "PYTHONPATH": str(ROOT)}
    died = subprocess.run([sys.executable, "-c", script], env=env, cwd=ROOT, check=False)
    assert died.returncode == -signal.SIGKILL
    assert installation.failpoint_was_hit(failpoint_name)
    assert Run.objects.count() == (failpoint_name == "before_wakeup")
    again = installation.submit("ok", options={"idempotencyKey": "k"})
    runs = 2 if failpoint_name == "before_wakeup" and key == "None" else 1
    assert Run.objects.count() == runs
    assert installation.wait_for_end(again).status == "succeeded"
    installation.check_invariants()


@pytest.mark.slow
def test_every_worker_killed_at_once_and_started_again(
    installation: FaultInstallation, tmp_path: Path
) -> None:
    """As after a restart of the machine: no process saw the others die."""
    scheduler, workers = installation.start("scheduler"), installation.workers(2)
    gate = tmp_path / "gate"
    marks = [tmp_path / str(number) for number in range(8)]
    ids = [installation.submit("ok", f"until:{gate}", f"touch:{mark}") for mark in marks]
    installation.wait_until(lambda: RunStep.objects.filter(status="started").count() >= 5)
    for process in (*workers, scheduler):
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
    gate.touch()
    installation.start("scheduler")
    installation.workers(1)
    runs = [installation.wait_for_end(run_id) for run_id in ids]
    assert {run.status for run in runs} == {"succeeded"}
    assert [mark.read_text() for mark in marks] == ["x"] * 8
    installation.check_invariants()
