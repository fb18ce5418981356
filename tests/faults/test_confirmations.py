"""A run waits for a person's confirmation while processes are killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.models import Confirmation, Decision
from runs.models import Run
from tests.faults.installation import FaultInstallation
from tests.support.decisions.confirmations import confirm


def submit_risky_run(installation: FaultInstallation, file: Path, *do: str) -> str:
    """Submit a run whose risky calls need a person's confirmation."""
    create_rule(RuleFields("confirm", tool="test_risk", reason="test"), actor="test")
    return installation.submit(*do, template="test_calling", file=str(file), effect="once")


def is_waiting(run_id: str) -> bool:
    return Run.objects.filter(id=run_id, ready=False, waiting_for__isnull=False).exists()


def approve(run_id: str) -> None:
    number = (Run.objects.get(id=run_id).waiting_for or {})["decisionId"]
    confirm(decision_id=number, by="admin:ann", how="admin")


@pytest.mark.slow
def test_a_waiting_run_resumes_after_every_process_was_killed(
    installation: FaultInstallation, tmp_path: Path
) -> None:
    processes = [installation.start("scheduler"), *installation.workers(1)]
    run_id = submit_risky_run(installation, tmp_path / "notes", "note:a,risk:b", "note:c")
    installation.wait_until(lambda: is_waiting(run_id))
    for process in processes:
        process.kill()
    approve(run_id)
    installation.start("scheduler")
    installation.workers(1)
    assert installation.wait_for_end(run_id).status == "succeeded"
    assert (tmp_path / "notes").read_text() == "abc"
    installation.check_invariants()


@pytest.mark.parametrize(
    "failpoint_name", ["before_waiting", pytest.param("after_waiting", marks=pytest.mark.slow)]
)
def test_a_worker_killed_while_it_requests_a_confirmation_requests_it_once_and_repeats_nothing(
    installation: FaultInstallation, tmp_path: Path, failpoint_name: str
) -> None:
    installation.start("scheduler")
    installation.workers(2)
    installation.arm_failpoint(failpoint_name)
    run_id = submit_risky_run(installation, tmp_path / "notes", "risk:b")
    installation.wait_until(lambda: installation.failpoint_was_hit(failpoint_name))
    installation.wait_until(lambda: is_waiting(run_id) or Run.objects.get(id=run_id).ended_at)
    assert Decision.objects.count() == (failpoint_name == "after_waiting" or is_waiting(run_id))
    if is_waiting(run_id):
        approve(run_id)
    run = installation.wait_for_end(run_id)
    # A worker that was lost in a once step before it recorded the request may already have acted.
    assert run.status == ("failed" if failpoint_name == "before_waiting" else "succeeded")
    assert (tmp_path / "notes").exists() == (failpoint_name == "after_waiting")
    installation.check_invariants()


@pytest.mark.slow
def test_the_scheduler_ends_a_confirmation_without_an_answer(
    installation: FaultInstallation, tmp_path: Path
) -> None:
    installation.start("scheduler", CONTINUITY_CONFIRM_TTL_S="2")
    installation.workers(1, CONTINUITY_CONFIRM_TTL_S="2")
    run_id = submit_risky_run(installation, tmp_path / "notes", "risk:b")
    run = installation.wait_for_end(run_id)
    assert ((run.error or {})["errorCode"], run.error["details"]["because"]) == (
        "POLICY_DENIED",
        "expired",
    )
    assert Confirmation.objects.get().status == "expired"
    assert not (tmp_path / "notes").exists()
    installation.check_invariants()


def test_a_worker_killed_during_a_decision_loses_neither_run_nor_decision(
    installation: FaultInstallation, tmp_path: Path
) -> None:
    installation.start("scheduler")
    [worker] = installation.workers(1)
    run_id = submit_risky_run(installation, tmp_path / "notes", "risk:b")
    installation.wait_until(lambda: is_waiting(run_id))
    installation.arm_failpoint("after_claim")
    approve(run_id)
    installation.wait_until(lambda: not worker.is_running)
    installation.workers(1)
    run = installation.wait_for_end(run_id)
    assert (run.status, (tmp_path / "notes").read_text()) == ("succeeded", "b")
    installation.check_invariants()
