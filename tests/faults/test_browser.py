"""Faults during a batch of pages: another worker continues the batch, and no browser process
remains."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import psutil
import pytest

from decisions.identity.principals import local_principal
from runs.models import Run, RunStep
from runs.submission.services import cancel_run, submit_run
from tests.faults.world import Process, World
from tests.support.page_server import PageServer, html, serve_pages

PAGES, MANY = 20, 200


@pytest.fixture
def pages() -> Iterator[PageServer]:
    with serve_pages() as server:
        for number in range(MANY):
            text = f"<title>Page {number}</title><h1>Page {number}</h1><p>{'words ' * 50}</p>"
            server.add(f"/page/{number}", html(text, delay=0.15))
        yield server


def read_all(pages: PageServer, number: int = PAGES) -> str:
    return submit_run(
        principal=local_principal(),
        template_id="batch_extract_pages",
        inputs={"urls": [pages.url(f"/page/{n}") for n in range(number)], "concurrency": 2},
        options={"mode": "async"},
    ).run_id


def browsers(worker: Process) -> list[psutil.Process]:
    return worker.descendants()


def all_gone(processes: list[psutil.Process]) -> bool:
    return all(
        not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
        for process in processes
    )


def read_pages(run_id: str) -> set[int]:
    done = RunStep.objects.filter(run_id=run_id, status="succeeded")
    return set(done.values_list("index", flat=True))


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_second_worker_does_not_read_completed_pages_again(
    world: World, pages: PageServer, how: signal.Signals
) -> None:
    world.start("scheduler")
    (first,) = world.workers(1)
    run_id = read_all(pages)
    world.until(lambda: len(read_pages(run_id)) >= 6)
    left_behind = browsers(first)
    assert left_behind
    first.send(how)
    first.wait(15)
    world.until(lambda: all_gone(left_behind), "a browser outlived its worker", 10)
    done = read_pages(run_id)
    assert 6 <= len(done) < PAGES
    (second,) = world.workers(1)
    run = world.ended(run_id)
    assert (run.status, run.done_steps) == ("succeeded", PAGES)
    assert run.times_lost == (how == signal.SIGKILL)
    assert {number: pages.hits[f"/page/{number}"] for number in done} == dict.fromkeys(done, 1)
    assert max(pages.hits[f"/page/{number}"] for number in range(PAGES)) <= 2
    world.check()
    living = browsers(second)
    second.send(signal.SIGTERM)
    second.wait(15)
    world.until(lambda: all_gone(living), "a browser outlived its worker", 10)


def owners(run_id: str) -> set[str]:
    return {
        str(owner)
        for owner in RunStep.objects.filter(run_id=run_id, status="succeeded").values_list(
            "owner", flat=True
        )
    }


@pytest.mark.soak
@pytest.mark.parametrize("victim", ["the helper", "the worker that has the lease"])
def test_a_large_batch_survives_the_loss_of_one_of_its_workers(
    world: World, pages: PageServer, victim: str
) -> None:
    world.start("scheduler")
    both = world.workers(2)
    run_id = read_all(pages, MANY)
    world.until(lambda: len(owners(run_id)) == 2 and len(read_pages(run_id)) >= 30, seconds=60)
    holder = Run.objects.get(id=run_id).lease_owner
    by_role = {world.worker_of(each).id == holder: each for each in both}  # type: ignore[union-attr]
    by_role[victim != "the helper"].kill()
    done = read_pages(run_id)
    run = world.ended(run_id, 120)
    assert (run.status, run.done_steps) == ("succeeded", MANY)
    assert run.times_lost == (victim != "the helper")
    assert {number: pages.hits[f"/page/{number}"] for number in done} == dict.fromkeys(done, 1)
    again = [number for number in range(MANY) if pages.hits[f"/page/{number}"] > 1]
    assert len(again) <= 4  # the pages that the two workers were reading
    world.check()


@pytest.mark.soak
def test_a_killed_browser_costs_each_of_its_pages_one_more_attempt(
    world: World, pages: PageServer
) -> None:
    world.start("scheduler")
    (worker,) = world.workers(1)
    run_id = read_all(pages)
    world.until(lambda: len(read_pages(run_id)) >= 4)
    for process in browsers(worker):
        if "chrom" in process.name() or "headless" in process.name():
            process.kill()
    run = world.ended(run_id)
    assert run.status == "succeeded", run.error
    assert run.times_lost == 0
    world.check()


@pytest.mark.soak
def test_a_run_survives_the_kill_of_its_browser_driver(world: World, pages: PageServer) -> None:
    world.start("scheduler")
    (worker,) = world.workers(1)
    run_id = read_all(pages)
    world.until(lambda: len(read_pages(run_id)) >= 4)
    for process in browsers(worker):
        if process.name() == "node":
            process.kill()
    run = world.ended(run_id)
    assert run.status in ("succeeded", "partial_success"), run.error
    again = world.ended(read_all(pages))
    assert again.status == "succeeded"
    world.check()


@pytest.mark.soak
def test_a_canceled_batch_requests_no_more_pages(world: World, pages: PageServer) -> None:
    world.start("scheduler")
    world.workers(1)
    run_id = read_all(pages)
    world.until(lambda: len(read_pages(run_id)) >= 3)
    cancel_run(principal=local_principal(), run_id=run_id)
    world.until(lambda: Run.objects.get(id=run_id).status == "canceled")
    world.check()
    asked = sum(pages.hits.values())
    assert asked < PAGES
