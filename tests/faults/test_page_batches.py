"""Faults during a batch of pages: another worker continues the batch, and no browser process
remains."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import psutil
import pytest

from decisions.identity.principals import local_principal
from runs.models import Run, RunStep
from runs.submission.cancel import cancel_run
from runs.submission.submit import submit_run
from tests.faults.installation import FaultInstallation, Process
from tests.support.browser.page_server import PageServer, html, serve_pages

PAGES, MANY_PAGES = 20, 200


@pytest.fixture
def pages() -> Iterator[PageServer]:
    with serve_pages() as server:
        for number in range(MANY_PAGES):
            text = f"<title>Page {number}</title><h1>Page {number}</h1><p>{'words ' * 50}</p>"
            server.add(f"/page/{number}", html(text, delay=0.15))
        yield server


def submit_batch(pages: PageServer, number: int = PAGES) -> str:
    return submit_run(
        principal=local_principal(),
        template_id="batch_extract_pages",
        inputs={"urls": [pages.url(f"/page/{n}") for n in range(number)], "concurrency": 2},
        options={"mode": "async"},
    ).run_id


def browser_processes(worker: Process) -> list[psutil.Process]:
    return worker.descendants()


def all_ended(processes: list[psutil.Process]) -> bool:
    return all(
        not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
        for process in processes
    )


def completed_pages(run_id: str) -> set[int]:
    succeeded = RunStep.objects.filter(run_id=run_id, status="succeeded")
    return set(succeeded.values_list("index", flat=True))


@pytest.mark.slow
@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_a_second_worker_does_not_read_completed_pages_again(
    installation: FaultInstallation, pages: PageServer, signal_number: signal.Signals
) -> None:
    installation.start("scheduler")
    (first,) = installation.workers(1)
    run_id = submit_batch(pages)
    installation.wait_until(lambda: len(completed_pages(run_id)) >= 6)
    processes = browser_processes(first)
    assert processes
    first.send_signal(signal_number)
    first.wait(15)
    installation.wait_until(lambda: all_ended(processes), "a browser outlived its worker", 10)
    completed = completed_pages(run_id)
    assert 6 <= len(completed) < PAGES
    (second,) = installation.workers(1)
    run = installation.wait_for_end(run_id)
    assert (run.status, run.done_steps) == ("succeeded", PAGES)
    assert run.times_lost == (signal_number == signal.SIGKILL)
    assert {number: pages.hits[f"/page/{number}"] for number in completed} == dict.fromkeys(
        completed, 1
    )
    assert max(pages.hits[f"/page/{number}"] for number in range(PAGES)) <= 2
    installation.check_invariants()
    processes = browser_processes(second)
    second.send_signal(signal.SIGTERM)
    second.wait(15)
    installation.wait_until(lambda: all_ended(processes), "a browser outlived its worker", 10)


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
    installation: FaultInstallation, pages: PageServer, victim: str
) -> None:
    installation.start("scheduler")
    workers = installation.workers(2)
    run_id = submit_batch(pages, MANY_PAGES)
    installation.wait_until(
        lambda: len(owners(run_id)) == 2 and len(completed_pages(run_id)) >= 30, seconds=60
    )
    holder = Run.objects.get(id=run_id).lease_owner
    by_role = {installation.worker_of(worker).id == holder: worker for worker in workers}  # type: ignore[union-attr]
    by_role[victim != "the helper"].kill()
    completed = completed_pages(run_id)
    run = installation.wait_for_end(run_id, 120)
    assert (run.status, run.done_steps) == ("succeeded", MANY_PAGES)
    assert run.times_lost == (victim != "the helper")
    assert {number: pages.hits[f"/page/{number}"] for number in completed} == dict.fromkeys(
        completed, 1
    )
    again = [number for number in range(MANY_PAGES) if pages.hits[f"/page/{number}"] > 1]
    assert len(again) <= 4  # the pages that the two workers were reading
    installation.check_invariants()


@pytest.mark.soak
def test_a_killed_browser_costs_each_of_its_pages_one_more_attempt(
    installation: FaultInstallation, pages: PageServer
) -> None:
    installation.start("scheduler")
    (worker,) = installation.workers(1)
    run_id = submit_batch(pages)
    installation.wait_until(lambda: len(completed_pages(run_id)) >= 4)
    for process in browser_processes(worker):
        if "chrom" in process.name() or "headless" in process.name():
            process.kill()
    run = installation.wait_for_end(run_id)
    assert run.status == "succeeded", run.error
    assert run.times_lost == 0
    installation.check_invariants()


@pytest.mark.soak
def test_a_run_survives_the_kill_of_its_browser_driver(
    installation: FaultInstallation, pages: PageServer
) -> None:
    installation.start("scheduler")
    (worker,) = installation.workers(1)
    run_id = submit_batch(pages)
    installation.wait_until(lambda: len(completed_pages(run_id)) >= 4)
    for process in browser_processes(worker):
        if process.name() == "node":
            process.kill()
    run = installation.wait_for_end(run_id)
    assert run.status in ("succeeded", "partial_success"), run.error
    again = installation.wait_for_end(submit_batch(pages))
    assert again.status == "succeeded"
    installation.check_invariants()


@pytest.mark.soak
def test_a_canceled_batch_requests_no_more_pages(
    installation: FaultInstallation, pages: PageServer
) -> None:
    installation.start("scheduler")
    installation.workers(1)
    run_id = submit_batch(pages)
    installation.wait_until(lambda: len(completed_pages(run_id)) >= 3)
    cancel_run(principal=local_principal(), run_id=run_id)
    installation.wait_until(lambda: Run.objects.get(id=run_id).status == "canceled")
    installation.check_invariants()
    requested = sum(pages.hits.values())
    assert requested < PAGES
