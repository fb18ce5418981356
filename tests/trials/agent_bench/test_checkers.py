"""The checkers of the tasks: the site's state decides, or facts that the goal does not have."""

from __future__ import annotations

import json
import re

import pytest

from tests.trials.agent_bench.catalogue import all_tasks
from tests.trials.agent_bench.site import Site, SiteRequest
from tests.trials.agent_bench.solver.intents import Open
from tests.trials.agent_bench.task import TASKS, Assignment, Seeded, has_word

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


@pytest.mark.parametrize(
    "answer", ["4412", "The total is 4,412.", "4'412 pieces", "4412, not 4411"]
)
def test_a_number_is_found_with_a_separator_of_thousands(answer: str) -> None:
    assert has_word(answer, 4412)


@pytest.mark.parametrize("answer", ["44120", "14,412", "4,4120", "4.412", "1, 4, 412", "441,2"])
def test_another_number_is_not_taken_for_it(answer: str) -> None:
    assert not has_word(answer, 4412)


def assigned(name: str, seed: int) -> tuple[Site, Assignment]:
    """Return a task's site and what it asks."""
    site = Site()
    site.url = "http://shop.example"
    return site, TASKS[name].build(site, Seeded(name, seed))


def shown(site: Site, path: str) -> str:
    """Return what a page of the site has."""
    return str(site.respond(SiteRequest("GET", path, {}, {}, {}, {}, {})).body)


@pytest.mark.parametrize("name", NAMES)
def test_the_scripted_model_opens_only_addresses_that_the_goal_has(name: str) -> None:
    _, assignment = assigned(name, 1)
    opened = [intent.url for intent in assignment.intents if isinstance(intent, Open)]
    assert [url for url in opened if url not in assignment.goal] == []


def test_the_missing_page_differs_by_seed_and_both_years_are_no_answer() -> None:
    missing = set()
    for seed in range(1, 9):
        site, assignment = assigned("missing page", seed)
        years = re.findall(r"Archive (\d+)", shown(site, "/"))
        (kept,) = (year for year in years if "number is" in shown(site, f"/{year}"))
        (gone,) = set(years) - {kept}
        code = shown(site, f"/{kept}").partition("number is ")[2].partition("<")[0]
        missing.add(gone)
        assert assignment.check(f"{gone} is missing (404). The number is {code}.")
        assert not assignment.check(f"{kept} is missing; the number is {code}")
        assert not assignment.check(f"{kept} is missing; the number is {code} ({gone})")
    assert len(missing) > 1


def test_a_search_is_not_answered_with_the_codes_of_everything() -> None:
    for seed in SEEDS:
        site, assignment = assigned("search by script", seed)
        search = SiteRequest("GET", "/api", {"q": ""}, {}, {}, {}, {})
        everything = json.loads(site.respond(search).body)
        word = assignment.goal.split('"')[1]
        found = [name.split()[1] for name in everything if name.startswith(word)]
        assert assignment.check("Codes: " + ", ".join(found))
        assert not assignment.check(" ".join(everything))
        assert not assignment.check(" ".join(found[1:]))


def test_both_words_of_a_page_that_changed_are_no_answer() -> None:
    site, assignment = assigned("back", 1)
    before = shown(site, "/").partition("word is ")[2].partition("<")[0]
    shown(site, "/end")
    after = shown(site, "/").partition("word is ")[2].partition("<")[0]
    assert assignment.check(after)
    assert not assignment.check(f"{before} {after}")
