"""What happens to the runs of a worker that is lost, that releases them, or that does not know
that it was lost.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import pytest
from django.db.models import F
from django.test import override_settings

from artifacts.models import Artifact
from decisions.foundation.infra import staleness
from decisions.foundation.infra.processes import _identity
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.journal.reader import read_journal
from runs.journal.writer import write
from runs.lifecycle.changes import StepChange
from runs.lifecycle.lease import Lease
from runs.models import Run, RunEvent, RunStep, Slot, StepStatus, Worker
from runs.queries.runs import get_run
from runs.queue.lease_expiry import (
    MAX_TIMES_LOST,
    HeartbeatMonitor,
    end_leases_of_worker,
    end_stray_leases,
    free_stale_slots,
)
from runs.queue.leases import release_lease
from runs.submission.cancel import cancel_run
from tests.support.runs.concurrent_calls import at_once
from tests.support.runs.worker_rows import error_of, must_take, register, take, taken_slots

Submit = Callable[..., str]


class Clock:
    """A monotonic clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake_clock = Clock()
    monkeypatch.setattr(staleness, "time", SimpleNamespace(monotonic=fake_clock.monotonic))
    return fake_clock


def claim_new_run(worker_id: str, submit: Submit) -> Lease:
    submit()
    lease = take(worker_id)
    assert lease is not None
    return lease


def slots_taken() -> int:
    return len(taken_slots())


def test_the_run_of_a_lost_worker_is_requeued_with_a_new_wakeup(
    submit: Submit, sent_wakeups: list[tuple[str, str]]
) -> None:
    lease = claim_new_run(register("w1"), submit)
    sent_wakeups.clear()
    assert end_leases_of_worker("w1", beat=0, reason="gone") == [lease.run.id]
    run = Run.objects.get()
    assert (run.status, run.lease_owner, run.epoch, run.times_lost) == ("running", None, 2, 1)
    assert sent_wakeups == [("runs", run.id)]
    assert slots_taken() == 0
    assert AuditEntry.objects.filter(action="run.worker_lost", resource_id=run.id).count() == 1
    again = take(register("w2"))
    assert again is not None
    assert again.run.id == run.id


def test_a_worker_whose_heartbeat_advances_meanwhile_keeps_its_leases(submit: Submit) -> None:
    claim_new_run(register("w1"), submit)
    Worker.objects.update(beat=F("beat") + 1)
    assert end_leases_of_worker("w1", beat=0, reason="looked dead") == []
    assert (Run.objects.get().lease_owner, slots_taken()) == ("w1", 1)


def test_concurrent_reapers_end_the_leases_of_a_worker_once(submit: Submit) -> None:
    claim_new_run(register("w1"), submit)
    lost = at_once([partial(end_leases_of_worker, "w1", beat=0, reason="gone")] * 4)
    assert sorted(map(len, lost)) == [0, 0, 0, 1]
    assert Run.objects.get().times_lost == 1
    assert AuditEntry.objects.filter(action="run.worker_lost").count() == 1


def test_the_third_lost_worker_fails_the_run(submit: Submit) -> None:
    submit()
    for n in range(MAX_TIMES_LOST):
        assert take(register(f"w{n}"))
        end_leases_of_worker(f"w{n}", beat=0, reason="gone")
    run = Run.objects.get()
    assert (run.status, run.times_lost) == ("failed", 3)
    assert error_of(run)["errorCode"] == "EXECUTION_ERROR"
    assert error_of(run)["details"]["causeCode"] == "WORKER_LOST"
    assert take(register("w9")) is None
    assert slots_taken() == 0
    last = RunEvent.objects.order_by("seq").last()
    assert last
    assert last.type == "run.failed"


def test_a_run_that_progresses_between_its_losses_is_not_given_up(submit: Submit) -> None:
    submit(*["ok"] * (MAX_TIMES_LOST + 2))
    for n in range(MAX_TIMES_LOST + 1):
        lease = must_take(f"w{n}")
        change = StepChange(n, StepStatus.SUCCEEDED, [], output={"did": "ok"})
        write(lease, [change], active_ms=1)
        end_leases_of_worker(f"w{n}", beat=0, reason="gone")
    run = Run.objects.get()
    assert (run.status, run.done_steps, run.times_lost) == ("running", 4, 4)
    assert must_take("w9").run.id == run.id


def test_a_run_given_up_keeps_what_its_steps_returned(submit: Submit, principal: Principal) -> None:
    submit("ok", "ok", "ok")
    lease = must_take("w0")
    write(lease, [StepChange(0, StepStatus.SUCCEEDED, [], output={})], active_ms=1)
    for n in range(MAX_TIMES_LOST):
        end_leases_of_worker(f"w{n}", beat=0, reason="gone")
        taken = take(register(f"w{n + 1}"))
        assert (taken is None) == (n == MAX_TIMES_LOST - 1)
    run = Run.objects.get()
    assert (run.status, error_of(run)["details"]["succeededSteps"]) == ("failed", 1)
    kept = Artifact.objects.get(run_id=run.id)
    assert (kept.name, kept.kind) == ("partial-result.json", "result")
    assert kept.expires_at is not None
    given = get_run(principal=principal, run_id=run.id)
    assert given["attempt"] == MAX_TIMES_LOST
    assert kept.id in str(given["nextActions"])


def test_a_run_pinned_to_the_lost_worker_is_announced_on_the_shared_queue(
    submit: Submit, sent_wakeups: list[tuple[str, str]]
) -> None:
    submit()
    Run.objects.update(pinned_worker="w1")
    assert take(register("w1"))
    sent_wakeups.clear()
    end_leases_of_worker("w1", beat=0, reason="gone")
    assert [queue for queue, _ in sent_wakeups] == ["runs"]
    assert Run.objects.get().pinned_worker is None


def test_a_released_pinned_run_is_announced_on_the_shared_queue(
    submit: Submit, sent_wakeups: list[tuple[str, str]]
) -> None:
    submit()
    Run.objects.update(pinned_worker="w1")
    lease = take(register("w1"))
    assert lease
    sent_wakeups.clear()
    assert release_lease(lease, reason="draining", active_ms=5)
    assert [queue for queue, _ in sent_wakeups] == ["runs"]
    assert take(register("w2"))


def test_releasing_a_run_keeps_its_clock_and_costs_no_attempt(submit: Submit) -> None:
    lease = claim_new_run(register("w1"), submit)
    assert release_lease(lease, reason="draining", active_ms=1234)
    run = Run.objects.get()
    assert (run.active_ms, run.times_lost, run.lease_owner) == (1234, 0, None)
    assert slots_taken() == 0
    assert not release_lease(lease, reason="draining", active_ms=9999)
    assert Run.objects.get().active_ms == 1234


def test_the_slot_of_a_canceled_run_is_freed_when_its_worker_is_lost(
    submit: Submit, principal: Principal
) -> None:
    lease = claim_new_run(register("w1"), submit)
    cancel_run(principal=principal, run_id=lease.run.id)
    assert slots_taken() == 1  # the worker frees it after it has released the run
    end_leases_of_worker("w1", beat=0, reason="gone")
    assert slots_taken() == 0
    assert Run.objects.get().status == "canceled"


def test_a_lease_claimed_by_a_lost_worker_is_ended(submit: Submit) -> None:
    """A paused worker may claim a run between its loss and its own detection of it."""
    register("w1")
    end_leases_of_worker("w1", beat=0, reason="paused")
    lease = claim_new_run("w1", submit)
    assert end_stray_leases() == [lease.run.id]
    assert end_stray_leases() == []
    run = Run.objects.get()
    assert (run.lease_owner, run.times_lost, slots_taken()) == (None, 1, 0)


def test_the_reaper_also_ends_stray_leases(submit: Submit) -> None:
    claim_new_run("never registered", submit)
    HeartbeatMonitor().end_expired_leases()
    assert Run.objects.get().lease_owner is None


def test_leases_of_live_workers_are_not_stray(submit: Submit) -> None:
    claim_new_run(register("w1"), submit)
    assert end_stray_leases() == []
    assert Run.objects.get().lease_owner == "w1"


@override_settings(LEASE_LOST_S=30)
def test_a_worker_is_lost_when_its_heartbeat_stops_for_the_lease_duration(
    submit: Submit, clock: Clock
) -> None:
    claim_new_run(register("w1"), submit)
    monitor = HeartbeatMonitor()
    for second in range(59):
        Worker.objects.update(beat=F("beat") + int(second == 29))
        monitor.end_expired_leases()
        assert Run.objects.get().lease_owner == "w1"
        clock.now += 1
    monitor.end_expired_leases()
    assert Run.objects.get().lease_owner is None


@override_settings(LEASE_LOST_S=30)
def test_time_without_a_heartbeat_check_counts_against_no_worker(
    submit: Submit, clock: Clock
) -> None:
    claim_new_run(register("w1"), submit)
    monitor = HeartbeatMonitor()
    monitor.end_expired_leases()
    clock.now += 35  # the database was unavailable to the worker and the scheduler alike
    monitor.end_expired_leases()
    assert Run.objects.get().lease_owner == "w1"


@override_settings(LEASE_LOST_S=30)
def test_a_reaper_that_just_started_gives_every_worker_the_full_lease(
    submit: Submit, clock: Clock
) -> None:
    claim_new_run(register("w1"), submit)
    clock.now += 10_000
    HeartbeatMonitor().end_expired_leases()
    assert Run.objects.get().lease_owner == "w1"


def test_a_worker_whose_process_has_ended_is_lost_at_once(submit: Submit) -> None:
    process = subprocess.Popen(["sleep", "60"])
    identity = _identity(process.pid)
    assert identity
    claim_new_run(register("w1", process=identity), submit)
    HeartbeatMonitor().end_expired_leases()
    assert Run.objects.get().lease_owner == "w1"
    process.kill()
    process.wait()
    HeartbeatMonitor().end_expired_leases()
    assert Run.objects.get().lease_owner is None


def test_a_worker_on_another_machine_is_judged_by_its_heartbeat_only(submit: Submit) -> None:
    claim_new_run(register("w1", process="other-boot:4026531836:999999:1"), submit)
    HeartbeatMonitor().end_expired_leases()
    assert Run.objects.get().lease_owner == "w1"


def test_stale_slots_are_freed_and_held_ones_are_not(submit: Submit, principal: Principal) -> None:
    running, canceled = (
        claim_new_run(worker, submit) for worker in (register("w1"), register("w2"))
    )
    cancel_run(principal=principal, run_id=canceled.run.id)
    Slot.objects.filter(number=4).update(run_id="run_of_nobody", worker_id="w1", epoch=3)
    Slot.objects.filter(number=3).update(run_id="run_of_a_ghost", worker_id="ghost", epoch=3)
    assert free_stale_slots() == 3
    assert Slot.objects.get(run_id__isnull=False).run_id == running.run.id


def test_a_slot_release_racing_a_reaper_never_frees_the_slot_of_the_next_holder(
    submit: Submit,
) -> None:
    for n in range(5):
        old = claim_new_run(register(f"old{n}"), submit)
        new = register(f"new{n}")
        at_once(
            [
                partial(end_leases_of_worker, f"old{n}", beat=0, reason="gone"),
                partial(release_lease, old, reason="draining", active_ms=0),
                free_stale_slots,
            ]
        )
        lease = take(new)
        assert lease is not None
        assert not release_lease(old, reason="draining", active_ms=0)
        assert free_stale_slots() == 0
        assert Slot.objects.get(run_id__isnull=False).epoch == lease.epoch
        end_leases_of_worker(new, beat=0, reason="test over")
        Run.objects.all().delete()


def test_interrupted_steps_are_repeated_except_once_steps(submit: Submit) -> None:
    for effect, read in (("read", "pending"), ("at_least_once", "pending"), ("once", "started")):
        submit("ok", "ok", effect=effect)
        lease = take(register(f"w-{effect}"))
        assert lease
        RunStep.objects.filter(run=lease.run, index=0).update(status="started")
        assert [step.status for step in read_journal(lease.run)] == [read, "pending"]


def test_concurrent_submits_and_losses_leave_no_run_behind(submit: Submit) -> None:
    """Claims, losses and releases run concurrently; then every run is claimable or leased."""

    def claim_and_lose(n: int) -> None:
        worker = register(f"w{n}")
        lease = take(worker)
        time.sleep(0.01 * (n % 3))
        if n % 2 and lease:
            release_lease(lease, reason="draining", active_ms=0)
        end_leases_of_worker(worker, beat=0, reason="gone")

    for _ in range(4):
        submit()
    at_once([partial(claim_and_lose, n) for n in range(8)])
    assert slots_taken() == 0
    for run in Run.objects.exclude(status="failed"):
        assert (run.ready, run.lease_owner) == (True, None)
