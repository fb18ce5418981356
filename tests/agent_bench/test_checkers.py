"""The checkers of the tasks: the site's state decides, or facts that the goal does not have."""

from __future__ import annotations

import pytest

from tests.agent_bench.catalogue import all_tasks
from tests.agent_bench.site import Site, SiteRequest
from tests.agent_bench.task import Seeded

NAMES = [task.name for task in all_tasks()]
SEEDS = (1, 2, 3)
START = SiteRequest("GET", "/", {}, {}, {}, {}, {})


def test_there_are_forty_tasks() -> None:
    assert len(NAMES) == 40


@pytest.mark.parametrize("seed", SEEDS)
def test_no_task_counts_as_done_if_nothing_was_done(seed: int) -> None:
    done = []
    for task in all_tasks():
        site = Site()
        assignment = task.build(site, Seeded(task.name, seed))
        for answer in ("", "Done.", "Done. The goal was reached.", assignment.goal):
            if assignment.check(answer):
                done.append((task.name, answer))
    assert done == []


def test_the_seed_varies_each_site_and_the_same_seed_repeats_it() -> None:
    for task in all_tasks():
        goals = []
        for seed in (*SEEDS, SEEDS[0]):
            site = Site()
            goal = task.build(site, Seeded(task.name, seed)).goal
            goals.append((goal, site.respond(START).body))
        assert goals[0] == goals[-1], task.name
        assert len(set(goals)) > 1, task.name
