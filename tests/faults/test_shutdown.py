"""A worker that receives SIGTERM releases its runs at once; a worker that was paused too long has
lost its leases."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from decisions.models import AuditEntry
from runs.models import Run, RunStep, Slot, Worker
from tests.faults.world import World
from tests.integration.workers import error_of


def under_way() -> int:
    return RunStep.objects.filter(status="started").count()


def test_sigterm_releases_all_five_runs_of_a_worker(world: World) -> None:
    world.start("scheduler")
    (worker,) = world.workers(1)
    ids = [world.submit("ok", "sleep:4", "ok") for _ in range(5)]
    world.until(lambda: under_way() == 5)
    began = time.monotonic()
    worker.send(signal.SIGTERM)
    code = worker.wait(15)
    took_s = time.monotonic() - began
    assert (code, Run.objects.filter(lease_owner__isnull=False).count()) == (0, 0)
    assert took_s <= 6
    assert Slot.objects.filter(run_id__isnull=False).count() == 0
    assert AuditEntry.objects.filter(action="run.handed_back").count() == 5
    world.workers(1)
    runs = [world.ended(run_id) for run_id in ids]
    assert {(run.status, run.times_lost) for run in runs} == {("succeeded", 0)}
    assert set(RunStep.objects.filter(index=0).values_list("attempts", flat=True)) == {1}
    world.check()


def test_another_worker_resumes_released_runs_at_once_without_a_scheduler(world: World) -> None:
    workers = world.workers(2)
    run_id = world.submit("ok", "sleep:4")
    world.until(lambda: under_way() == 1)
    holder = Run.objects.get(id=run_id).lease_owner
    (worker,) = [one for one in workers if (world.worker_of(one) or Worker()).id == holder]
    worker.send(signal.SIGTERM)
    took_s = world.until(lambda: Run.objects.get(id=run_id).lease_owner not in (holder, None))
    assert took_s < 2
    worker.wait(15)
    assert world.ended(run_id).status == "succeeded"
    world.check()


def test_a_step_that_hangs_in_a_thread_does_not_delay_the_shutdown(world: World) -> None:
    world.start("scheduler")
    (worker,) = world.workers(1)
    run_id = world.submit("sleep:60", effect="once")
    world.until(lambda: under_way() == 1)
    began = time.monotonic()
    worker.send(signal.SIGTERM)
    worker.wait(20)
    assert time.monotonic() - began <= 7.5
    world.workers(1)
    run = world.ended(run_id)
    assert error_of(run)["details"]["effect"] == "unknown"
    world.check()


def test_a_worker_paused_past_its_lease_writes_nothing_and_registers_under_a_new_name(
    world: World, tmp_path: Path
) -> None:
    world.start("scheduler")
    (paused,) = world.workers(1)
    first = world.worker_of(paused)
    run_id = world.submit("ok", "sleep:1", f"touch:{tmp_path / 'mark'}")
    world.until(lambda: under_way() == 1)
    paused.pause()
    world.workers(1)
    run = world.ended(run_id)
    before = Run.objects.filter(id=run_id).values().get()
    seqs = run.last_seq
    paused.send(signal.SIGCONT)
    world.until(lambda: (world.worker_of(paused) or first) != first)
    time.sleep(1.5)
    assert Run.objects.filter(id=run_id).values().get() == before
    assert Run.objects.get(id=run_id).last_seq == seqs
    assert (run.status, run.times_lost) == ("succeeded", 1)
    assert (tmp_path / "mark").read_text() == "x"
    world.check()


def test_a_resumed_worker_does_not_touch_a_run_that_another_worker_holds(
    world: World, tmp_path: Path
) -> None:
    world.start("scheduler")
    (paused,) = world.workers(1)
    run_id = world.submit("sleep:1", "sleep:4", f"touch:{tmp_path / 'mark'}")
    world.until(lambda: under_way() == 1)
    paused.pause()
    world.workers(1)
    world.until(lambda: Run.objects.get(id=run_id).epoch == 3)
    paused.send(signal.SIGCONT)
    run = world.ended(run_id)
    assert (run.status, run.epoch, run.times_lost) == ("succeeded", 3, 1)
    assert (tmp_path / "mark").read_text() == "x"
    assert Worker.objects.filter(lost_at__isnull=True).count() == 2
    world.check()
