"""A run waits for a person's confirmation while processes are killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from decisions.authorization.confirmations import confirm
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.models import Confirmation, Decision
from runs.models import Run
from tests.faults.world import World


def submitted(world: World, file: Path, *do: str) -> str:
    """Submit a run whose risky calls need a person's confirmation."""
    create_rule(RuleFields("confirm", tool="test_risk"), actor="test")
    return world.submit(*do, template="test_calling", file=str(file), effect="once")


def waits(run_id: str) -> bool:
    return Run.objects.filter(id=run_id, ready=False, waiting_for__isnull=False).exists()


def approve(run_id: str) -> None:
    number = (Run.objects.get(id=run_id).waiting_for or {})["decisionId"]
    confirm(decision_id=number, by="admin:ann", how="admin")


def test_a_waiting_run_resumes_after_every_process_was_killed(world: World, tmp_path: Path) -> None:
    processes = [world.start("scheduler"), *world.workers(1)]
    run_id = submitted(world, tmp_path / "notes", "note:a,risk:b", "note:c")
    world.until(lambda: waits(run_id))
    for process in processes:
        process.kill()
    approve(run_id)
    world.start("scheduler")
    world.workers(1)
    assert world.ended(run_id).status == "succeeded"
    assert (tmp_path / "notes").read_text() == "abc"
    world.check()


@pytest.mark.parametrize("moment", ["before_waiting", "after_waiting"])
def test_a_worker_killed_while_it_requests_a_confirmation_requests_it_once_and_repeats_nothing(
    world: World, tmp_path: Path, moment: str
) -> None:
    world.start("scheduler")
    world.workers(2)
    world.arm(moment)
    run_id = submitted(world, tmp_path / "notes", "risk:b")
    world.until(lambda: world.was_hit(moment))
    world.until(lambda: waits(run_id) or Run.objects.get(id=run_id).ended_at)
    assert Decision.objects.count() == (moment == "after_waiting" or waits(run_id))
    if waits(run_id):
        approve(run_id)
    run = world.ended(run_id)
    # A worker that was lost in a once step before it recorded the request may already have acted.
    assert run.status == ("failed" if moment == "before_waiting" else "succeeded")
    assert (tmp_path / "notes").exists() == (moment == "after_waiting")
    world.check()


def test_the_scheduler_ends_a_confirmation_without_an_answer(world: World, tmp_path: Path) -> None:
    world.start("scheduler", CONTINUITY_CONFIRM_TTL_S="2")
    world.workers(1, CONTINUITY_CONFIRM_TTL_S="2")
    run_id = submitted(world, tmp_path / "notes", "risk:b")
    run = world.ended(run_id)
    assert ((run.error or {})["errorCode"], run.error["details"]["because"]) == (
        "POLICY_DENIED",
        "expired",
    )
    assert Confirmation.objects.get().status == "expired"
    assert not (tmp_path / "notes").exists()
    world.check()


def test_a_worker_killed_during_a_decision_loses_neither_run_nor_decision(
    world: World, tmp_path: Path
) -> None:
    world.start("scheduler")
    [worker] = world.workers(1)
    run_id = submitted(world, tmp_path / "notes", "risk:b")
    world.until(lambda: waits(run_id))
    world.arm("after_claim")
    approve(run_id)
    world.until(lambda: not worker.runs)
    world.workers(1)
    run = world.ended(run_id)
    assert (run.status, (tmp_path / "notes").read_text()) == ("succeeded", "b")
    world.check()
