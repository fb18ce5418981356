"""How a worker behaves when it is drained, given up, disconnected, or has to cancel a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import psycopg.errors
import pytest
from django.db import InternalError, OperationalError
from django.test import override_settings

from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.execution import engine
from runs.execution.running_steps import RunningSteps
from runs.journal import writer
from runs.lifecycle.lease import Lease
from runs.models import Run, RunStep, Slot, Worker
from runs.queue import lease_expiry, leases
from runs.submission.cancel import cancel_run
from runs.worker.worker import WorkerProcess
from tests.support.runs.waiting import wait_until
from tests.support.runs.worker_rows import error_of, fresh, taken_slots

Submit = Callable[..., str]
Background = Callable[[Callable[[], object]], threading.Thread]


def started_steps() -> int:
    return RunStep.objects.filter(status="started").count()


def test_a_drain_releases_the_run_at_once_and_another_worker_continues_it(
    submit: Submit, worker: WorkerProcess, in_background: Background
) -> None:
    run_id = submit("ok", "sleep:30")
    thread = in_background(worker.work)
    wait_until(lambda: fresh(run_id).done_steps == 1 and started_steps())
    worker.drain()
    thread.join(20)
    assert not thread.is_alive()  # the step takes 30 s
    run = fresh(run_id)
    assert (run.status, run.lease_owner, run.times_lost, run.epoch) == ("running", None, 0, 2)
    assert taken_slots() == []
    assert AuditEntry.objects.filter(action="run.handed_back").count() == 1


def test_a_thread_that_waits_to_claim_during_a_drain_claims_nothing(
    submit: Submit,
    worker: WorkerProcess,
    in_background: Background,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_id, is_claiming = submit("ok"), threading.Event()
    monkeypatch.setattr(
        "runs.worker.worker.hit", lambda name: is_claiming.set() if name == "before_claim" else None
    )
    with worker._claiming:  # another thread claims
        thread = in_background(worker.work)
        assert is_claiming.wait(30)
        worker.drain()
    thread.join(30)
    assert not AuditEntry.objects.filter(action__in=["run.started", "run.handed_back"]).exists()
    assert (fresh(run_id).status, fresh(run_id).epoch) == ("queued", 0)


def test_a_drain_waits_for_a_once_step_to_end(
    submit_unusual: Submit, worker: WorkerProcess, in_background: Background, tmp_path: Path
) -> None:
    submit_unusual("append first", file=str(tmp_path / "f"), effect="once")
    thread = in_background(worker.work)
    wait_until((tmp_path / "f").exists)
    worker.drain()
    thread.join(6)
    assert RunStep.objects.get().status == "succeeded"


def test_a_step_that_ends_during_a_drain_is_in_the_journal(
    submit: Submit,
    worker: WorkerProcess,
    in_background: Background,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The end of the step and the request to drain are in the inbox together."""
    run_id = submit("sleep:0.3", "sleep:30", effect="once", concurrency=2)
    process_item = engine.Execution._process

    def drain_and_process(self: engine.Execution, item: object) -> None:
        worker.drain()
        process_item(self, item)  # type: ignore[arg-type]

    monkeypatch.setattr(engine.Execution, "_process", drain_and_process)
    monkeypatch.setattr(engine, "ONCE_GRACE_S", 0.1)
    thread = in_background(worker.work)
    thread.join(6)
    steps = RunStep.objects.filter(run_id=run_id).order_by("index")
    assert [step.status for step in steps] == ["succeeded", "started"]
    assert fresh(run_id).done_steps == 1


def test_a_once_step_interrupted_by_a_drain_is_not_repeated(
    submit_unusual: Submit,
    worker: WorkerProcess,
    in_background: Background,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "ONCE_GRACE_S", 0.1)
    file = tmp_path / "f"
    run_id = submit_unusual("append slowly", file=str(file), effect="once")
    thread = in_background(worker.work)
    wait_until(file.exists)
    worker.drain()
    thread.join(6)
    with closing(WorkerProcess("w2")) as other:
        assert other.work() == 1
    run = fresh(run_id)
    assert (run.status, error_of(run)["errorCode"]) == ("failed", "STEP_EXECUTION_FAILED")
    assert error_of(run)["details"]["effect"] == "unknown"
    assert file.read_text() == "slowly\n"


def test_a_cancel_stops_the_running_step(
    submit: Submit, worker: WorkerProcess, in_background: Background, principal: Principal
) -> None:
    run_id = submit("sleep:30")
    thread = in_background(worker.work)
    wait_until(started_steps)
    cancel_run(principal=principal, run_id=run_id)
    thread.join(4)
    assert not thread.is_alive()  # without the cancel, the end of the lease stops it a second later
    assert (fresh(run_id).status, taken_slots()) == ("canceled", [])


@pytest.mark.parametrize("thread", ["leases", "heartbeat"])
def test_a_check_or_heartbeat_that_fails_is_repeated(
    thread: str, worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = []

    def fail() -> None:
        failed.append(threading.current_thread().name)
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(worker.heartbeat, "_executions", fail)
    wait_until(lambda: failed.count(thread) >= 2, within_s=10)


def test_a_worker_given_up_stops_its_runs_and_takes_another_name(
    submit: Submit, worker: WorkerProcess, in_background: Background
) -> None:
    run_id = submit("sleep:30")
    in_background(worker.work)
    wait_until(started_steps)
    row = Worker.objects.get(id="w1")
    while not lease_expiry.end_leases_of_worker("w1", beat=row.beat, reason="paused"):
        row.refresh_from_db()
    wait_until(lambda: worker.worker_id != "w1")
    wait_until(
        lambda: fresh(run_id).lease_owner == worker.worker_id
    )  # its own thread continued with it
    assert (fresh(run_id).epoch, fresh(run_id).times_lost) == (3, 1)
    worker.drain()


def test_a_run_claimed_under_a_lost_name_is_released(
    submit: Submit, worker: WorkerProcess, in_background: Background
) -> None:
    """A run claimed between the loss and its detection by the worker is released by the worker."""
    run_id = submit("sleep:30")
    in_background(worker.work)
    wait_until(started_steps)
    Worker.objects.filter(id="w1").delete()
    wait_until(lambda: worker.worker_id != "w1")
    wait_until(lambda: fresh(run_id).epoch > 1)
    wait_until(lambda: fresh(run_id).lease_owner in (None, worker.worker_id))
    worker.drain()


@pytest.mark.slow
def test_a_new_lease_of_the_same_run_is_watched_while_the_old_one_closes(
    submit: Submit,
    worker: WorkerProcess,
    in_background: Background,
    principal: Principal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closing, may_close, closed = threading.Event(), threading.Event(), threading.Event()
    close = RunningSteps.close

    def close_slowly(self: RunningSteps) -> None:
        is_first = not closing.is_set()
        closing.set()
        if is_first:
            may_close.wait(60)
        close(self)
        if is_first:
            closed.set()

    monkeypatch.setattr(RunningSteps, "close", close_slowly)
    run_id = submit("sleep:300")
    first = in_background(worker.work)
    wait_until(started_steps)
    Run.objects.filter(id=run_id).update(lease_owner=None, epoch=2)
    Slot.objects.update(run_id=None, worker_id=None)
    assert closing.wait(60)
    second = in_background(worker.work)
    wait_until(lambda: fresh(run_id).epoch == 3)
    may_close.set()
    assert closed.wait(60)
    cancel_run(principal=principal, run_id=run_id)
    second.join(20)
    first.join(20)
    assert not second.is_alive()
    assert taken_slots() == []


@override_settings(LEASE_GIVE_UP_S=0.5)
def test_a_worker_without_a_heartbeat_releases_its_runs(
    submit: Submit,
    worker: WorkerProcess,
    in_background: Background,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_id = submit("sleep:30")
    thread = in_background(worker.work)
    wait_until(started_steps)

    def raise_error() -> None:
        raise OperationalError("the database is unavailable")

    monkeypatch.setattr(worker.heartbeat, "beat", raise_error)
    wait_until(lambda: fresh(run_id).epoch > 1, 5)
    worker.drain()
    thread.join(5)
    assert fresh(run_id).lease_owner is None


@override_settings(LEASE_GIVE_UP_S=0.5)
def test_a_heartbeat_that_hangs_in_the_database_still_releases_the_runs(
    submit: Submit,
    worker: WorkerProcess,
    in_background: Background,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_id = submit("sleep:30")
    in_background(worker.work)
    wait_until(started_steps)
    released = threading.Event()
    monkeypatch.setattr(worker.heartbeat, "beat", lambda: released.wait(8))
    wait_until(lambda: fresh(run_id).epoch > 1, 5)
    worker.drain()
    released.set()


def test_a_database_outage_during_a_run_does_not_fail_the_run(
    submit: Submit, worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Releasing fails twice as well before the database answers again."""
    run_id = submit("ok", "ok")
    original_release, failures_left = leases.release_lease, [2]

    def raise_error(*args: object, **kwargs: object) -> None:
        raise OperationalError("the server closed the connection")

    def release_lease(*args: object, **kwargs: object) -> bool:
        if failures_left[0]:
            failures_left[0] -= 1
            raise OperationalError("the server is still unavailable")
        return original_release(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(leases, "release_lease", release_lease)
    with monkeypatch.context() as broken:
        broken.setattr(writer, "write", raise_error)
        worker.work()
    wait_until(lambda: fresh(run_id).lease_owner is None)
    worker.work()
    assert (fresh(run_id).status, fresh(run_id).times_lost) == ("succeeded", 0)


def database_error(sqlstate: str) -> Callable[..., NoReturn]:
    """Return a function that raises what the database answers with this code, as Django does."""

    def fail(*args: object, **kwargs: object) -> NoReturn:
        raise InternalError(sqlstate) from psycopg.errors.lookup(sqlstate)()

    return fail


@pytest.mark.parametrize(
    ("sqlstate", "times_lost"), [("25006", 0), ("XX000", 0), ("42P01", 1), ("42501", 1)]
)
def test_a_run_whose_end_and_whose_failure_cannot_be_written_is_executed_again(
    submit: Submit,
    worker: WorkerProcess,
    monkeypatch: pytest.MonkeyPatch,
    sqlstate: str,
    times_lost: int,
) -> None:
    """For some seconds, all writes of the worker are refused: read-only, or a table is missing."""
    run_id = submit("ok")
    with monkeypatch.context() as broken:
        broken.setattr(writer, "write", database_error(sqlstate))
        worker.work()
        assert fresh(run_id).status == "running"
    wait_until(lambda: fresh(run_id).lease_owner is None)
    assert taken_slots() == []
    worker.work()
    assert (fresh(run_id).status, fresh(run_id).times_lost) == ("succeeded", times_lost)


def test_a_run_whose_end_can_never_be_written_fails_the_third_time(
    submit: Submit, worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = submit("ok")
    monkeypatch.setattr(writer, "write", database_error("42P01"))
    for _ in range(3):
        worker.work()
        wait_until(lambda: fresh(run_id).lease_owner is None)
    assert (fresh(run_id).status, fresh(run_id).times_lost) == ("failed", 3)


def test_a_lease_that_no_thread_works_under_is_released(
    submit: Submit, worker: WorkerProcess
) -> None:
    """Whatever left it: the heartbeat counts the leases of its worker."""
    run_id = submit("ok")
    lease = worker._claim()
    assert lease is not None
    worker._claimed.clear()
    wait_until(lambda: fresh(run_id).lease_owner is None, 20)
    assert worker.work() == 1
    assert fresh(run_id).status == "succeeded"


def test_a_worker_that_failed_to_open_can_be_opened_again(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = WorkerProcess("w1")
    with monkeypatch.context() as broken:
        broken.setattr(process.heartbeat, "register", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            process.open()
    process.open()
    assert Worker.objects.get(id="w1").lost_at is None
    process.close()


def test_closing_marks_the_worker_as_gone_at_once(worker: WorkerProcess) -> None:
    worker.close()
    assert Worker.objects.get(id="w1").lost_at is not None
    time.sleep(0.3)
    assert Worker.objects.filter(lost_at__isnull=True).count() == 0


def test_a_session_that_fails_to_close_keeps_no_slot(
    submit: Submit,
    worker: WorkerProcess,
    principal: Principal,
    monkeypatch: pytest.MonkeyPatch,
    in_background: Background,
) -> None:
    monkeypatch.setattr(RunningSteps, "close", lambda self: 1 / 0)
    run_id = submit("sleep:30")
    thread = in_background(worker.work)
    wait_until(started_steps)
    cancel_run(principal=principal, run_id=run_id)
    thread.join(5)
    assert taken_slots() == []


@pytest.mark.parametrize("effect", ["at_least_once", "once"])
def test_a_claim_that_was_committed_without_an_answer_is_released_and_executed(
    submit: Submit, worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch, effect: str
) -> None:
    run_id = submit("ok")
    RunStep.objects.update(effect=effect)
    original = leases.claim_run

    def lose_the_answer(*args: Any) -> Lease | None:
        monkeypatch.setattr(leases, "claim_run", original)
        original(*args)
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(leases, "claim_run", lose_the_answer)
    assert worker.work() == 0
    wait_until(lambda: fresh(run_id).lease_owner is None, within_s=20)
    assert worker.work() == 1
    run = fresh(run_id)
    assert (run.status, run.epoch, run.times_lost) == ("succeeded", 3, 0)
    assert taken_slots() == []


def test_a_run_that_this_worker_claimed_again_is_not_released_as_unanswered(
    submit: Submit, worker: WorkerProcess
) -> None:
    """The thread of the earlier claim may still close its pages, and ends later."""
    run_id = submit("sleep:30")
    first = worker._claim()
    assert first is not None
    leases.release_lease(first, reason="suspended", active_ms=0)
    second = worker._claim()
    assert second is not None
    worker._claimed.discard((run_id, first.epoch))
    worker._claim_failed_at = time.monotonic()
    worker._release_unanswered_claim()
    assert (fresh(run_id).lease_owner, fresh(run_id).epoch) == (worker.worker_id, second.epoch)


def test_a_run_whose_template_is_missing_after_the_claim_fails(
    submit: Submit, worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = submit("ok")
    monkeypatch.setattr(engine, "get_template", lambda template_id: None)
    worker.work()
    run = fresh(run_id)
    assert (run.status, error_of(run)["errorCode"]) == ("failed", "EXECUTION_ERROR")
    assert taken_slots() == []


@override_settings(POLL_S=0.2)
def test_a_run_without_a_wakeup_is_still_claimed(submit: Submit, worker: WorkerProcess) -> None:
    run_id = submit("ok")
    wait_until(lambda: fresh(run_id).status == "succeeded", within_s=20)


def test_the_heartbeat_saves_the_clock_of_a_long_step(
    submit: Submit, worker: WorkerProcess, in_background: Background
) -> None:
    run_id = submit("sleep:30")
    in_background(worker.work)
    wait_until(lambda: fresh(run_id).active_ms > 100)
    worker.drain()


def test_a_worker_that_registers_again_reports_its_new_name(
    principal: Principal,
) -> None:
    names: list[str] = []
    worker = WorkerProcess("w1", renamed=names.append)
    worker.heartbeat.register("w1")
    Worker.objects.filter(id="w1").update(lost_at=datetime.now(UTC))
    worker.heartbeat.beat()
    assert names == [worker.worker_id]
    assert worker.worker_id != "w1"
