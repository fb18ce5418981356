"""A worker that receives SIGTERM releases its runs at once; a worker that was paused too long has
lost its leases."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from decisions.models import AuditEntry
from runs.models import Run, RunStep, Slot, Worker
from tests.faults.installation import FaultInstallation
from tests.support.runs.worker_rows import error_of


def count_started_steps() -> int:
    return RunStep.objects.filter(status="started").count()


def test_sigterm_releases_all_five_runs_of_a_worker(installation: FaultInstallation) -> None:
    installation.start("scheduler")
    (worker,) = installation.workers(1)
    ids = [installation.submit("ok", "sleep:4", "ok") for _ in range(5)]
    sleeping = RunStep.objects.filter(status="started", index=1)
    installation.wait_until(lambda: sleeping.count() == 5)
    start_time = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    code = worker.wait(15)
    took_s = time.monotonic() - start_time
    assert (code, Run.objects.filter(lease_owner__isnull=False).count()) == (0, 0)
    assert took_s <= 6
    assert Slot.objects.filter(run_id__isnull=False).count() == 0
    assert AuditEntry.objects.filter(action="run.handed_back").count() == 5
    installation.workers(1)
    runs = [installation.wait_for_end(run_id) for run_id in ids]
    assert {(run.status, run.times_lost) for run in runs} == {("succeeded", 0)}
    assert set(RunStep.objects.filter(index=0).values_list("attempts", flat=True)) == {1}
    installation.check_invariants()


@pytest.mark.slow
def test_another_worker_resumes_released_runs_at_once_without_a_scheduler(
    installation: FaultInstallation,
) -> None:
    workers = installation.workers(2)
    run_id = installation.submit("ok", "sleep:4")
    installation.wait_until(lambda: count_started_steps() == 1)
    holder = Run.objects.get(id=run_id).lease_owner
    (worker,) = [
        process for process in workers if (installation.worker_of(process) or Worker()).id == holder
    ]
    worker.send_signal(signal.SIGTERM)
    took_s = installation.wait_until(
        lambda: Run.objects.get(id=run_id).lease_owner not in (holder, None)
    )
    assert took_s < 2
    worker.wait(15)
    assert installation.wait_for_end(run_id).status == "succeeded"
    installation.check_invariants()


@pytest.mark.slow
def test_a_step_that_hangs_in_a_thread_does_not_delay_the_shutdown(
    installation: FaultInstallation,
) -> None:
    installation.start("scheduler")
    (worker,) = installation.workers(1)
    run_id = installation.submit("sleep:60", effect="once")
    installation.wait_until(lambda: count_started_steps() == 1)
    start_time = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    worker.wait(20)
    assert time.monotonic() - start_time <= 7.5
    installation.workers(1)
    run = installation.wait_for_end(run_id)
    assert error_of(run)["details"]["effect"] == "unknown"
    installation.check_invariants()


def test_a_worker_paused_past_its_lease_writes_nothing_and_registers_under_a_new_name(
    installation: FaultInstallation, tmp_path: Path
) -> None:
    installation.start("scheduler")
    (paused,) = installation.workers(1)
    first = installation.worker_of(paused)
    run_id = installation.submit("ok", f"until:{tmp_path / 'gate'}", f"touch:{tmp_path / 'mark'}")
    installation.wait_until(
        lambda: RunStep.objects.filter(run_id=run_id, index=1, status="started").exists()
    )
    paused.pause()
    (tmp_path / "gate").touch()
    installation.workers(1)
    run = installation.wait_for_end(run_id)
    before = Run.objects.filter(id=run_id).values().get()
    seqs = run.last_seq
    paused.send_signal(signal.SIGCONT)
    installation.wait_until(lambda: (installation.worker_of(paused) or first) != first)
    time.sleep(1.5)
    assert Run.objects.filter(id=run_id).values().get() == before
    assert Run.objects.get(id=run_id).last_seq == seqs
    assert (run.status, run.times_lost) == ("succeeded", 1)
    assert (tmp_path / "mark").read_text() == "x"
    installation.check_invariants()


@pytest.mark.slow
def test_a_resumed_worker_does_not_touch_a_run_that_another_worker_holds(
    installation: FaultInstallation, tmp_path: Path
) -> None:
    installation.start("scheduler")
    (paused,) = installation.workers(1)
    first = installation.worker_of(paused)
    gate = tmp_path / "gate"
    run_id = installation.submit(f"until:{gate}", f"touch:{tmp_path / 'mark'}")
    installation.wait_until(lambda: count_started_steps() == 1)
    paused.pause()
    installation.workers(1)
    installation.wait_until(lambda: Run.objects.get(id=run_id).epoch == 3)
    paused.send_signal(signal.SIGCONT)
    installation.wait_until(lambda: (installation.worker_of(paused) or first) != first)
    gate.touch()
    run = installation.wait_for_end(run_id)
    assert (run.status, run.epoch, run.times_lost) == ("succeeded", 3, 1)
    assert (tmp_path / "mark").read_text() == "x"
    assert Worker.objects.filter(lost_at__isnull=True).count() == 2
    installation.check_invariants()
