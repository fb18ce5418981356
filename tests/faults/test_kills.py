"""A worker is killed without a word at each moment of a run's life; another one goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs.models import Run, RunStep, Slot
from tests.faults.world import Process, World

# The moment, and whether the first step has left its mark by then.
MOMENTS = {
    "before_claim": False, "after_claim": False, "step_started": False, "step_over": True,
    "before_ending": True, "after_ending": True,
}  # fmt: skip


def killed(processes: list[Process]) -> list[Process]:
    return [process for process in processes if not process.runs]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_survives_its_worker(world: World, tmp_path: Path, moment: str) -> None:
    world.start("scheduler")
    workers = world.workers(2)
    world.arm(moment)
    run_id = world.submit(f"touch:{tmp_path / 'mark'}", "ok")
    run = world.ended(run_id)
    assert world.was_hit(moment)
    world.until(lambda: killed(workers))
    assert [process.wait(5) for process in killed(workers)] == [-9]
    assert run.status == "succeeded"
    # What was done and told is not done again; what was done and not told is.
    marks = (tmp_path / "mark").read_text()
    assert marks == ("xx" if moment == "step_over" else "x")
    assert run.times_lost == (moment not in ("before_claim", "after_ending"))
    world.check()
