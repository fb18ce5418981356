"""Every pair of statuses, through the one function that changes the status of a run."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, connection, transaction

from decisions.models import AuditEntry
from runs.lifecycle.changes import NewEvent, Transition
from runs.lifecycle.state_machine import ALLOWED, InvalidTransition, move
from runs.models import TERMINAL, Run, RunEvent, RunStatus

LEGAL_PAIRS = {
    *(("queued", to) for to in ("running", "failed", "canceled")),
    *(("running", to) for to in ("succeeded", "failed", "partial_success", "canceled")),
}
ERROR = {"error": {"errorCode": "EXECUTION_ERROR", "message": "set by a test"}}
MakeRun = Callable[..., Run]
ENDED = datetime(2026, 1, 1, tzinfo=UTC)


def values_for(to: RunStatus) -> dict[str, object]:
    return {**ERROR} if to in (RunStatus.FAILED, RunStatus.CANCELED) else {}


def test_a_run_changes_status_only_along_legal_pairs(make_run: MakeRun) -> None:
    for start, to in itertools.product(RunStatus, RunStatus):
        run, is_legal = make_run(status=start), (start, to) in LEGAL_PAIRS
        change = Transition(run, {"status": start}, values_for(to))
        if is_legal:
            move(change, to, actor="tester")
        else:
            with pytest.raises(InvalidTransition):
                move(change, to, actor="tester")
        run.refresh_from_db()
        assert run.status == (to if is_legal else start)
        assert RunEvent.objects.filter(run=run).count() == is_legal
        assert AuditEntry.objects.filter(resource_id=run.id).count() == is_legal


def test_the_table_of_transitions_matches_the_spec() -> None:
    assert {(start, to) for start, ends in ALLOWED.items() for to in ends} == LEGAL_PAIRS


@pytest.mark.parametrize("to", sorted(TERMINAL))
def test_a_transition_that_loses_a_race_writes_nothing(make_run: MakeRun, to: RunStatus) -> None:
    run = make_run(status="running")
    Run.objects.filter(id=run.id).update(status="succeeded", ended_at=datetime.now(UTC))
    with pytest.raises(InvalidTransition):
        move(Transition(run, {"status": run.status}, values_for(to)), to, actor="late")
    run.refresh_from_db()
    assert (run.status, run.last_seq) == ("succeeded", 0)
    assert not AuditEntry.objects.filter(resource_id=run.id).exists()


def test_an_ended_run_has_no_lease_and_waits_for_nothing(make_run: MakeRun) -> None:
    run = make_run(status="running", lease_owner="w", pinned_worker="w", waiting_for={"type": "x"})
    move(Transition(run, {"status": run.status}), RunStatus.SUCCEEDED, actor="w")
    run.refresh_from_db()
    assert (run.lease_owner, run.pinned_worker, run.waiting_for) == (None, None, None)
    assert (run.ready, run.ended_at is None) == (False, False)


def test_a_transition_records_its_event_last_and_audits_the_actor(make_run: MakeRun) -> None:
    run = make_run(status="running", last_seq=4)
    change = Transition(run, {"status": run.status}, events=[NewEvent("step.succeeded", {"n": 1})])
    move(change, RunStatus.SUCCEEDED, actor="worker:w", data={"summary": "done"})
    recorded = RunEvent.objects.filter(run=run).order_by("seq").values_list("seq", "type", "data")
    assert list(recorded) == [
        (5, "step.succeeded", {"n": 1}),
        (6, "run.succeeded", {"summary": "done"}),
    ]
    entry = AuditEntry.objects.get(resource_id=run.id)
    assert (entry.action, entry.actor) == ("run.succeeded", "worker:w")
    assert (entry.tenant_id, entry.workspace_id) == (run.tenant_id, run.workspace_id)


def test_timestamps_never_decrease_when_the_clock_does(make_run: MakeRun) -> None:
    future = datetime.now(UTC) + timedelta(minutes=10)
    run = make_run(status="running", created_at=future, updated_at=future)
    move(Transition(run, {"status": run.status}), RunStatus.SUCCEEDED, actor="w")
    run.refresh_from_db()
    assert run.updated_at == future
    assert run.ended_at is not None
    assert run.ended_at >= run.created_at


@pytest.mark.parametrize(
    ("nonsense", "constraint"),
    [
        # The database names either of the two constraints that this row violates.
        ({"status": "finished"}, "run_status_known|run_ended_iff_terminal"),
        ({"status": "succeeded", "ended_at": None}, "run_ended_iff_terminal"),
        ({"status": "running", "ended_at": ENDED}, "run_ended_iff_terminal"),
        (
            {"status": "succeeded", "ended_at": ENDED, "lease_owner": "w"},
            "run_ended_iff_terminal",
        ),
        ({"status": "failed", "ended_at": ENDED, "error": None}, "run_failure_is_explained"),
        ({"status": "canceled", "ended_at": ENDED, "error": None}, "run_failure_is_explained"),
    ],
    ids=[f"nonsense{number}" for number in range(6)],
)
def test_the_database_refuses_an_inconsistent_run(
    make_run: MakeRun, nonsense: dict[str, object], constraint: str
) -> None:
    run = make_run(status="running")
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        Run.objects.filter(id=run.id).update(**nonsense)


def test_a_transition_in_a_rolled_back_transaction_leaves_nothing(make_run: MakeRun) -> None:
    run = make_run(status="running")
    with transaction.atomic():
        move(Transition(run, {"status": run.status}), RunStatus.SUCCEEDED, actor="w")
        transaction.set_rollback(True)
    run.refresh_from_db()
    assert run.status == "running"
    assert not RunEvent.objects.exists()
    assert not AuditEntry.objects.filter(resource_id=run.id).exists()


def test_a_transition_is_one_statement_on_postgresql(
    make_run: MakeRun, django_assert_max_num_queries: Callable[..., object]
) -> None:
    run = make_run(status="running")
    most = 1 if connection.vendor == "postgresql" else 9
    with django_assert_max_num_queries(most):  # type: ignore[attr-defined]
        move(Transition(run, {"status": run.status}), RunStatus.SUCCEEDED, actor="w")
