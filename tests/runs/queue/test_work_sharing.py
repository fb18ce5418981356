"""Work sharing: several workers execute a large batch; no step runs twice, and no run waits for
a lost worker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from decisions.identity.principals import Principal
from runs.journal import step_records, writer
from runs.lifecycle.lease import Lease, LeaseLost
from runs.models import Run, RunEvent, RunStep, Worker
from runs.queue import work_sharing
from runs.queue.leases import release_lease
from runs.submission.cancel import cancel_run
from runs.worker.worker import WorkerProcess
from tests.support.runs.waiting import wait_until
from tests.support.runs.worker_rows import error_of, fresh, must_take, register

Submit = Callable[..., str]
Background = Callable[[Callable[[], object]], threading.Thread]


@pytest.fixture
def second_worker(principal: Principal, settings: Any) -> Iterator[WorkerProcess]:
    """A second worker."""
    settings.LEASE_BEAT_S, settings.POLL_S = 0.1, 60
    process = WorkerProcess("w2")
    process.open()
    yield process
    process.close()


def is_leased(run_id: str) -> bool:
    return fresh(run_id).lease_owner is not None


def take_steps_as(worker_id: str, count: int) -> tuple[Lease, list[RunStep]]:
    """Take steps as a helper that is lost afterwards."""
    share = work_sharing.find_shared_run(register(worker_id))
    assert share is not None
    with work_sharing.lock_run(share):
        steps = work_sharing.take_steps(share, count)
        for step in steps:
            step.attempts += 1
        writer.write(share, [step_records.started(step) for step in steps], active_ms=0)
    return share, steps


def lose_worker(worker_id: str) -> None:
    Worker.objects.filter(id=worker_id).update(lost_at=datetime.now(UTC))


def check_events(run_id: str) -> None:
    """The events of a run are numbered without gaps, and each step ends once."""
    events = list(RunEvent.objects.filter(run_id=run_id).order_by("seq"))
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    ended_steps = [e.data["step"] for e in events if e.type in ("step.succeeded", "step.failed")]
    assert len(ended_steps) == len(set(ended_steps))


@pytest.mark.slow
def test_two_workers_complete_one_run(
    submit: Submit,
    worker: WorkerProcess,
    second_worker: WorkerProcess,
    in_background: Background,
    tmp_path: Path,
) -> None:
    gate, helped = tmp_path / "gate", list[int]()
    instructions = [f"touch:{tmp_path / str(n)}" for n in range(15)]
    run_id = submit(
        f"until:{gate}",
        *[step for instruction in instructions for step in (instruction, "sleep:0.1")],
        shared=True,
    )
    in_background(worker.work)
    wait_until(lambda: RunStep.objects.filter(owner="w1", status="started").exists())
    helping = in_background(lambda: helped.append(second_worker.work()))
    wait_until(lambda: RunStep.objects.filter(owner="w2").exists())
    gate.touch()
    helping.join(60)
    assert helped == [0]
    wait_until(lambda: fresh(run_id).ended_at)
    run = fresh(run_id)
    assert (run.status, run.done_steps, run.times_lost) == ("succeeded", 31, 0)
    steps = RunStep.objects.filter(run=run)
    assert set(steps.values_list("owner", flat=True)) == {"w1", "w2"}
    assert set(steps.values_list("attempts", flat=True)) == {1}
    assert [(tmp_path / str(n)).read_text() for n in range(15)] == ["x"] * 15
    check_events(run_id)


def test_a_helper_masks_what_the_run_masks(submit: Submit, second_worker: WorkerProcess) -> None:
    url = "http://127.0.0.1:1/?access_token=canary-8a1f0c93"
    run_id = submit("ok", f"say:{url}", f"say:It answered {url}.", shared=True)
    must_take("w1")
    second_worker.work()
    said = RunStep.objects.filter(run_id=run_id, owner="w2", index__gt=0).order_by("index")
    masked = "http://127.0.0.1:1/?access_token=***"
    assert [row.output["said"] for row in said] == [masked, f"It answered {masked}"]
    events = RunEvent.objects.filter(run_id=run_id)
    assert [event.data for event in events if "canary" in str(event.data)] == []


def test_a_run_that_is_not_shared_stays_with_its_worker(
    submit: Submit, worker: WorkerProcess, in_background: Background
) -> None:
    run_id = submit(*["sleep:0.05"] * 5)
    thread = in_background(worker.work)
    wait_until(lambda: is_leased(run_id))
    assert work_sharing.find_shared_run("w2") is None
    thread.join(20)
    assert fresh(run_id).status == "succeeded"


def test_a_worker_does_not_share_its_own_run_or_a_run_without_pending_steps(submit: Submit) -> None:
    submit("ok", "ok", shared=True)
    lease = must_take("w1")
    assert work_sharing.find_shared_run("w1") is None
    take_steps_as("w2", 5)
    assert work_sharing.find_shared_run("w3") is None
    assert lease.run.shared


def test_a_helper_takes_no_step_that_must_not_be_repeated(submit: Submit) -> None:
    submit("ok", "ok", shared=True, effect="once")
    must_take("w1")
    assert work_sharing.find_shared_run("w2") is None
    run = Run.objects.get()
    RunStep.objects.filter(run=run, index=1).update(effect="read")
    _, taken = take_steps_as("w2", 5)
    assert [step.index for step in taken] == [1]


@pytest.mark.slow
def test_steps_of_a_lost_helper_are_repeated(
    submit: Submit, worker: WorkerProcess, in_background: Background, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    run_id = submit(f"until:{gate}", "ok", "ok", shared=True)
    in_background(worker.work)
    wait_until(lambda: RunStep.objects.filter(owner="w1", status="started").exists())
    _, steps = take_steps_as("w9", 1)
    gate.touch()
    wait_until(lambda: fresh(run_id).done_steps == 2)
    assert not fresh(run_id).ended_at  # the helper may still be executing them
    lose_worker("w9")
    assert work_sharing.release_steps_of_lost_helpers() == 1
    wait_until(lambda: fresh(run_id).ended_at)
    step = RunStep.objects.get(run_id=run_id, index=steps[0].index)
    assert (fresh(run_id).status, step.owner, step.attempts) == ("succeeded", "w1", 2)
    check_events(run_id)


def test_a_late_write_of_a_lost_helper_is_refused(submit: Submit) -> None:
    run_id = submit("ok", "ok", shared=True)
    must_take("w1")
    share, steps = take_steps_as("w2", 1)
    lose_worker("w2")
    work_sharing.release_steps_of_lost_helpers()
    before = fresh(run_id).last_seq
    with pytest.raises(LeaseLost), work_sharing.lock_run(share):
        work_sharing.check_ownership(share, [step_records.failed(steps[0], {"errorCode": "X"})])
    assert fresh(run_id).last_seq == before
    assert RunStep.objects.get(run_id=run_id, index=1).status == "pending"


def test_a_step_that_loses_three_helpers_fails_and_the_others_succeed(
    submit: Submit, worker: WorkerProcess
) -> None:
    run_id = submit("ok", "ok", shared=True)
    lease = must_take("w0")
    for name in ("w7", "w8", "w9"):
        take_steps_as(name, 1)
        lose_worker(name)
        assert work_sharing.release_steps_of_lost_helpers() == 1
    release_lease(lease, reason="test", active_ms=0)
    worker.work()
    run = fresh(run_id)
    assert (run.status, run.done_steps) == ("partial_success", 2)
    step = RunStep.objects.get(run=run, index=1)
    assert error_of(step)["details"]["causeCode"] == "WORKER_LOST"
    check_events(run_id)


def test_a_new_lease_repeats_the_steps_of_helpers_and_refuses_their_writes(
    submit: Submit, worker: WorkerProcess
) -> None:
    run_id = submit("ok", "ok", shared=True)
    lease = must_take("w0")
    share, _ = take_steps_as("w2", 2)
    release_lease(lease, reason="test", active_ms=0)
    worker.work()
    assert fresh(run_id).status == "succeeded"
    with pytest.raises(LeaseLost), work_sharing.lock_run(share):
        pass


def test_a_cancel_also_stops_the_helper(
    submit: Submit,
    worker: WorkerProcess,
    second_worker: WorkerProcess,
    in_background: Background,
    principal: Principal,
) -> None:
    run_id = submit(*["sleep:30"] * 4, shared=True)
    workers = [in_background(worker.work)]
    wait_until(lambda: is_leased(run_id))
    workers.append(in_background(second_worker.work))
    wait_until(lambda: RunStep.objects.filter(owner="w2", status="started").exists())
    cancel_run(principal=principal, run_id=run_id)
    for thread in workers:
        thread.join(5)
        assert not thread.is_alive()
    assert fresh(run_id).done_steps == 0


def test_a_draining_helper_returns_its_steps(
    submit: Submit, worker: WorkerProcess, second_worker: WorkerProcess, in_background: Background
) -> None:
    run_id = submit("sleep:300", "sleep:300", "ok", shared=True, options={"timeoutMs": 600_000})
    in_background(worker.work)
    wait_until(lambda: is_leased(run_id))
    thread = in_background(second_worker.work)
    wait_until(lambda: RunStep.objects.filter(owner="w2", status="started").exists())
    second_worker.drain()
    thread.join(5)
    assert not RunStep.objects.filter(owner="w2", status="started").exists()
    assert Run.objects.get(id=run_id).status == "running"
    worker.drain()


@pytest.mark.slow
def test_the_timeout_of_the_run_also_ends_the_steps_of_helpers(
    submit: Submit, worker: WorkerProcess, second_worker: WorkerProcess, in_background: Background
) -> None:
    run_id = submit(*["sleep:30"] * 3, shared=True, options={"timeoutMs": 3000})
    in_background(worker.work)
    wait_until(lambda: is_leased(run_id))
    in_background(second_worker.work)
    wait_until(lambda: fresh(run_id).ended_at)
    run = fresh(run_id)
    assert (run.status, error_of(run)["errorCode"]) == ("failed", "RUN_TIMEOUT")
    assert not RunStep.objects.filter(run=run, status="succeeded").exists()
    check_events(run_id)


def test_a_helper_cannot_write_to_a_canceled_run(submit: Submit, principal: Principal) -> None:
    run_id = submit("ok", "ok", shared=True)
    must_take("w1")
    share, steps = take_steps_as("w2", 1)
    cancel_run(principal=principal, run_id=run_id)
    before = fresh(run_id).last_seq
    with pytest.raises(LeaseLost):
        writer.write(share, [step_records.failed(steps[0], {"errorCode": "X"})], active_ms=0)
    assert fresh(run_id).last_seq == before


def test_a_helper_cannot_write_a_step_that_another_worker_was_given(
    submit: Submit, second_worker: WorkerProcess, in_background: Background, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    run_id = submit("ok", f"until:{gate}", shared=True)
    must_take("w1")
    helping = in_background(second_worker.work)
    wait_until(lambda: RunStep.objects.filter(owner="w2", status="started").exists())
    RunStep.objects.filter(run_id=run_id, index=1).update(owner="w9")
    gate.touch()
    helping.join(60)
    assert not helping.is_alive()
    step = RunStep.objects.get(run_id=run_id, index=1)
    assert (step.status, step.owner, step.output) == ("started", "w9", None)
