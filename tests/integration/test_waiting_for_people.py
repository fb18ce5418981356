"""Suspended runs: they wait for a person without a worker, and resume at the same step."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from decisions.identity.principals import Principal
from decisions.models import Decision
from runs.models import OutboxEntry, Run, RunStep, Slot
from runs.queries.runs import get_run
from runs.worker.worker import WorkerProcess
from tests.support.people import events, fresh, say

pytest_plugins = ["tests.support.people_fixtures"]


def test_a_step_that_needs_confirmation_is_not_performed_and_holds_no_slot(
    place: WorkerProcess, call: Callable[..., Run], notes: Callable[[], str]
) -> None:
    run = call("note:a", "risk:b", "note:c")
    place.work()
    run = fresh(run)
    assert (run.status, run.ready, run.lease_owner, notes()) == ("running", False, None, "a")
    assert not Slot.objects.filter(run_id__isnull=False).exists()
    assert not OutboxEntry.objects.exists()
    assert RunStep.objects.get(run_id=run.id, index=1).status == "pending"
    assert events(run)[-1] == "run.waiting"


def test_a_suspended_run_reports_what_it_waits_for(
    place: WorkerProcess, principal: Principal, call: Callable[..., Run]
) -> None:
    run = call("risk:b")
    place.work()
    told = get_run(principal=principal, run_id=run.id)["waitingFor"]
    decision = Decision.objects.get()
    assert told["type"] == "confirmation"
    assert told["decisionId"] == decision.pk
    assert told["expiresAt"] > datetime.now(UTC).timestamp() * 1000
    assert (decision.tool, decision.kind, decision.reason) == ("test_risk", "step", "it is risky")
    assert decision.arguments["text"] == "b"


def test_a_confirmed_run_resumes_at_the_same_step(
    place: WorkerProcess, call: Callable[..., Run], notes: Callable[[], str]
) -> None:
    run = call("note:a", "note:b,risk:c,note:d", "note:e", effect="once")
    place.work()
    say(run)
    place.work()
    run = fresh(run)
    assert (run.status, notes()) == ("succeeded", "abcde")
    assert RunStep.objects.get(run_id=run.id, index=1).output == {
        "answers": [{"noted": "b"}, {"noted": "c"}, {"noted": "d"}]
    }


def test_a_step_can_need_confirmation_twice(
    place: WorkerProcess, call: Callable[..., Run], notes: Callable[[], str]
) -> None:
    run = call("risk:a,note:b,risk:c")
    for _ in range(2):
        place.work()
        say(run)
    place.work()
    assert (fresh(run).status, notes()) == ("succeeded", "abc")
    assert Decision.objects.count() == 2


def test_a_call_that_failed_before_the_wait_is_not_repeated(
    place: WorkerProcess, call: Callable[..., Run], notes: Callable[[], str]
) -> None:
    run = call("note:fail,risk:b")
    place.work()
    assert fresh(run).status == "failed"
    assert not Decision.objects.exists()


def test_a_suspended_run_resumes_in_another_process_after_a_restart(
    place: WorkerProcess, call: Callable[..., Run], notes: Callable[[], str]
) -> None:
    run = call("note:a,risk:b", effect="once")
    place.work()
    place.close()
    say(run)
    WorkerProcess("w2").work()
    assert (fresh(run).status, notes()) == ("succeeded", "ab")


def test_the_clock_of_a_run_stops_while_it_is_suspended(
    place: WorkerProcess, call: Callable[..., Run]
) -> None:
    run = call("risk:b", mode="sync")
    place.work()
    waited = fresh(run).active_ms
    long_ago = datetime.now(UTC) - timedelta(hours=2)
    Run.objects.update(created_at=long_ago, started_at=long_ago)
    say(run)
    place.work()
    assert fresh(run).status == "succeeded"
    assert fresh(run).active_ms - waited < 60_000


def test_suspended_runs_leave_their_slots_to_other_runs(
    place: WorkerProcess, call: Callable[..., Run], submit: Callable[..., str]
) -> None:
    waiting = [call("risk:b") for _ in range(6)]  # more than the number of slots
    place.work()
    other = submit("ok")
    place.work()
    assert Run.objects.get(id=other).status == "succeeded"
    assert {fresh(run).status for run in waiting} == {"running"}


def test_steps_running_beside_the_waiting_one_finish_first(
    place: WorkerProcess, call: Callable[..., Run], notes: Callable[[], str]
) -> None:
    run = call("note:a", "risk:b", "note:c", "risk:d", concurrency=4, effect="once")
    for _ in range(2):
        place.work()
        say(run)
    place.work()
    assert (fresh(run).status, sorted(notes())) == ("succeeded", ["a", "b", "c", "d"])


def test_a_crash_right_after_suspending_changes_nothing(
    place: WorkerProcess,
    call: Callable[..., Run],
    failpoint: Callable[[str, str], Path],
    notes: Callable[[], str],
) -> None:
    run = call("risk:b")
    failpoint("after_waiting", "raise")
    place.work()
    say(run)
    place.work()
    assert (fresh(run).status, notes()) == ("succeeded", "b")


def test_a_failure_right_before_suspending_leaves_no_decision(
    place: WorkerProcess, call: Callable[..., Run], failpoint: Callable[[str, str], Path]
) -> None:
    run = call("risk:b")
    failpoint("before_waiting", "raise")
    place.work()
    assert fresh(run).status == "failed"
    assert not Decision.objects.exists()


def test_a_shared_run_requests_confirmation_once_and_resumes(
    place: WorkerProcess, call: Callable[..., Run], notes: Callable[[], str]
) -> None:
    run = call("note:a", "risk:b", "note:c", shared=True)
    place.work()
    assert fresh(run).waiting_for is not None
    say(run)
    place.work()
    assert (fresh(run).status, sorted(notes())) == ("succeeded", ["a", "b", "c"])
