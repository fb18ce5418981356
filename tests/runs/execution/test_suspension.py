"""Suspended runs: they wait for a person without a worker, and resume at the same step."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from decisions.identity.principals import Principal
from decisions.models import Decision
from runs.models import Run, RunStep, Slot
from runs.queries.runs import get_run
from runs.worker.worker import WorkerProcess
from tests.support.decisions.confirmations import answer_confirmation, event_types, reload_run


def test_a_step_that_needs_confirmation_is_not_performed_and_holds_no_slot(
    worker: WorkerProcess, submit_calls: Callable[..., Run], notes: Callable[[], str]
) -> None:
    run = submit_calls("note:a", "risk:b", "note:c")
    worker.work()
    run = reload_run(run)
    assert (run.status, run.ready, run.lease_owner, notes()) == ("running", False, None, "a")
    assert not Slot.objects.filter(run_id__isnull=False).exists()
    assert RunStep.objects.get(run_id=run.id, index=1).status == "pending"
    assert event_types(run)[-1] == "run.waiting"


def test_a_suspended_run_reports_what_it_waits_for(
    worker: WorkerProcess, principal: Principal, submit_calls: Callable[..., Run]
) -> None:
    run = submit_calls("risk:b")
    worker.work()
    waiting_for = get_run(principal=principal, run_id=run.id)["waitingFor"]
    decision = Decision.objects.get()
    assert waiting_for["type"] == "confirmation"
    assert waiting_for["decisionId"] == decision.pk
    assert waiting_for["expiresAt"] > datetime.now(UTC).timestamp() * 1000
    assert (decision.tool, decision.kind, decision.reason) == ("test_risk", "step", "it is risky")
    assert decision.arguments["text"] == "b"


def test_a_confirmed_run_resumes_at_the_same_step(
    worker: WorkerProcess, submit_calls: Callable[..., Run], notes: Callable[[], str]
) -> None:
    run = submit_calls("note:a", "note:b,risk:c,note:d", "note:e", effect="once")
    worker.work()
    answer_confirmation(run)
    worker.work()
    run = reload_run(run)
    assert (run.status, notes()) == ("succeeded", "abcde")
    assert RunStep.objects.get(run_id=run.id, index=1).output == {
        "answers": [{"noted": "b"}, {"noted": "c"}, {"noted": "d"}]
    }


def test_a_step_can_need_confirmation_twice(
    worker: WorkerProcess, submit_calls: Callable[..., Run], notes: Callable[[], str]
) -> None:
    run = submit_calls("risk:a,note:b,risk:c")
    for _ in range(2):
        worker.work()
        answer_confirmation(run)
    worker.work()
    assert (reload_run(run).status, notes()) == ("succeeded", "abc")
    assert Decision.objects.count() == 2


def test_a_call_that_failed_before_the_wait_is_not_repeated(
    worker: WorkerProcess, submit_calls: Callable[..., Run], notes: Callable[[], str]
) -> None:
    run = submit_calls("note:fail,risk:b")
    worker.work()
    assert reload_run(run).status == "failed"
    assert not Decision.objects.exists()


def test_a_suspended_run_resumes_in_another_process_after_a_restart(
    worker: WorkerProcess, submit_calls: Callable[..., Run], notes: Callable[[], str]
) -> None:
    run = submit_calls("note:a,risk:b", effect="once")
    worker.work()
    worker.close()
    answer_confirmation(run)
    with closing(WorkerProcess("w2")) as other:
        other.work()
    assert (reload_run(run).status, notes()) == ("succeeded", "ab")


def test_the_clock_of_a_run_stops_while_it_is_suspended(
    worker: WorkerProcess, submit_calls: Callable[..., Run]
) -> None:
    run = submit_calls("risk:b", mode="sync")
    worker.work()
    waited = reload_run(run).active_ms
    long_ago = datetime.now(UTC) - timedelta(hours=2)
    Run.objects.update(created_at=long_ago, started_at=long_ago)
    answer_confirmation(run)
    worker.work()
    assert reload_run(run).status == "succeeded"
    assert reload_run(run).active_ms - waited < 60_000


def test_suspended_runs_leave_their_slots_to_other_runs(
    worker: WorkerProcess, submit_calls: Callable[..., Run], submit: Callable[..., str]
) -> None:
    waiting = [submit_calls("risk:b") for _ in range(6)]  # more than the number of slots
    worker.work()
    other = submit("ok")
    worker.work()
    assert Run.objects.get(id=other).status == "succeeded"
    assert {reload_run(run).status for run in waiting} == {"running"}


def test_steps_running_beside_the_waiting_one_finish_first(
    worker: WorkerProcess, submit_calls: Callable[..., Run], notes: Callable[[], str]
) -> None:
    run = submit_calls("note:a", "risk:b", "note:c", "risk:d", concurrency=4, effect="once")
    for _ in range(2):
        worker.work()
        answer_confirmation(run)
    worker.work()
    assert (reload_run(run).status, sorted(notes())) == ("succeeded", ["a", "b", "c", "d"])


def test_a_crash_right_after_suspending_changes_nothing(
    worker: WorkerProcess,
    submit_calls: Callable[..., Run],
    failpoint: Callable[[str, str], Path],
    notes: Callable[[], str],
) -> None:
    run = submit_calls("risk:b")
    failpoint("after_waiting", "raise")
    worker.work()
    answer_confirmation(run)
    worker.work()
    assert (reload_run(run).status, notes()) == ("succeeded", "b")


def test_a_failure_right_before_suspending_leaves_no_decision(
    worker: WorkerProcess, submit_calls: Callable[..., Run], failpoint: Callable[[str, str], Path]
) -> None:
    run = submit_calls("risk:b")
    failpoint("before_waiting", "raise")
    worker.work()
    assert reload_run(run).status == "failed"
    assert not Decision.objects.exists()


def test_a_shared_run_requests_confirmation_once_and_resumes(
    worker: WorkerProcess, submit_calls: Callable[..., Run], notes: Callable[[], str]
) -> None:
    run = submit_calls("note:a", "risk:b", "note:c", shared=True)
    worker.work()
    assert reload_run(run).waiting_for is not None
    answer_confirmation(run)
    worker.work()
    assert (reload_run(run).status, sorted(notes())) == ("succeeded", ["a", "b", "c"])
