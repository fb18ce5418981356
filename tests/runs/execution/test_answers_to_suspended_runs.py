"""Answers to a suspended run: approved, refused, late or missing, and the effect on the run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.dispatch import Signal

from decisions.authorization import confirmations
from decisions.authorization.authorize import authorize, request_confirmation, tool_call_request
from decisions.authorization.confirmations import refuse, withdraw
from decisions.authorization.policy_rules import RuleFields, create_rule, retire_rule
from decisions.foundation.errors import Conflict, InvalidInput
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, Confirmation, Decision
from runs.execution.suspension import suspend
from runs.journal.interruptions import NeedsPerson
from runs.lifecycle.changes import Transition
from runs.lifecycle.transition import apply
from runs.models import Run
from runs.submission import resume
from runs.submission.answer import answer_run
from runs.submission.cancel import cancel_run
from runs.submission.resume import resume_settled_runs
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.decisions.confirmations import (
    answer_confirmation,
    confirm,
    decision_id,
    reload_run,
)
from tests.support.runs.concurrent_calls import at_once
from tests.support.runs.worker_rows import must_take


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file from which a step reads the argument of its call: `from:{source}`."""
    file = tmp_path / "source"
    file.write_text("harmless")
    return file


def test_a_refused_step_fails_and_names_the_decision(
    worker: WorkerProcess, submit_calls: Callable[..., Run], notes: Callable[[], str]
) -> None:
    run = submit_calls("note:a", "risk:b")
    worker.work()
    number = decision_id(run)
    answer_confirmation(run, refuse)
    worker.work()
    error = reload_run(run).error or {}
    assert (reload_run(run).status, notes()) == ("failed", "a")
    assert error["errorCode"] == "POLICY_DENIED"
    assert error["details"]["because"] == "refused"
    assert error["details"]["decisionId"] == number


def test_a_step_not_confirmed_in_time_fails_as_expired(
    worker: WorkerProcess, submit_calls: Callable[..., Run], notes: Callable[[], str]
) -> None:
    run = submit_calls("risk:b")
    worker.work()
    Confirmation.objects.update(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    resume_settled_runs()
    worker.work()
    error = reload_run(run).error or {}
    assert (error["errorCode"], error["details"]["because"]) == ("POLICY_DENIED", "expired")
    assert notes() == ""


def test_no_confirmation_is_requested_for_a_denied_step(
    worker: WorkerProcess, submit_calls: Callable[..., Run], notes: Callable[[], str]
) -> None:
    create_rule(
        RuleFields("deny", scope="agent", scope_id="local", tool="test_risk", reason="test"),
        actor="t",
    )
    run = submit_calls("risk:b")
    worker.work()
    error = reload_run(run).error or {}
    assert (error["errorCode"], error["details"]["because"]) == ("POLICY_DENIED", "rule")
    assert not Decision.objects.exists()
    assert AuditEntry.objects.filter(action="policy.denied", resource_id=run.id).exists()


def test_a_deny_rule_created_later_overrides_the_approval(
    worker: WorkerProcess, submit_calls: Callable[..., Run], notes: Callable[[], str]
) -> None:
    run = submit_calls("risk:b")
    worker.work()
    answer_confirmation(run)
    create_rule(RuleFields("deny", tool="*", reason="test"), actor="t")
    worker.work()
    assert ((reload_run(run).error or {})["errorCode"], notes()) == ("POLICY_DENIED", "")


def test_changed_arguments_invalidate_the_approval(
    worker: WorkerProcess,
    submit_calls: Callable[..., Run],
    notes: Callable[[], str],
    source: Path,
) -> None:
    run = submit_calls(f"from:{source}")
    worker.work()
    first = decision_id(run)
    answer_confirmation(run)
    source.write_text("harmful")
    worker.work()
    assert notes() == ""
    assert decision_id(run) != first
    assert Decision.objects.get(pk=decision_id(run)).arguments["text"] == "harmful"
    answer_confirmation(run)
    worker.work()
    assert notes() == "harmful"


def test_a_suspended_run_can_be_canceled(
    worker: WorkerProcess,
    principal: Principal,
    submit_calls: Callable[..., Run],
    notes: Callable[[], str],
) -> None:
    run = submit_calls("risk:b")
    worker.work()
    number = decision_id(run)
    assert cancel_run(principal=principal, run_id=run.id)["success"]
    assert Confirmation.objects.get().status == "withdrawn"
    with pytest.raises(Conflict):
        confirm(decision_id=number, by="admin:ann", how="admin")
    assert (worker.work(), notes(), reload_run(run).status) == (0, "", "canceled")


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
def test_a_confirmation_requested_during_a_cancel_is_withdrawn(
    principal: Principal,
    confirm_rule: str,
    submit: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_id = submit("ok")
    lease = must_take("w1")
    request = tool_call_request(principal, "test_risk", {"text": "b"}, run_id=run_id, step_index=0)

    def withdraw_and_suspend(**named: str) -> None:
        withdraw(**named)
        if not Confirmation.objects.exists():
            needs = NeedsPerson(request, authorize(request))
            at_once([lambda: suspend(lease, needs, ([], []), active_ms=1, keeps_page=False)])

    monkeypatch.setattr("runs.submission.cancel.withdraw", withdraw_and_suspend)
    assert cancel_run(principal=principal, run_id=run_id)["success"]
    assert Run.objects.get(id=run_id).status == "canceled"
    assert Confirmation.objects.get().status == "withdrawn"


def test_a_concurrent_cancel_and_confirm_have_one_outcome(
    worker: WorkerProcess,
    principal: Principal,
    submit_calls: Callable[..., Run],
    notes: Callable[[], str],
) -> None:
    run = submit_calls("risk:b")
    worker.work()
    number = decision_id(run)

    def approve() -> None:
        with suppress(Conflict):
            confirm(decision_id=number, by="admin:ann", how="admin")

    at_once([approve, lambda: cancel_run(principal=principal, run_id=run.id), approve])
    worker.work()
    assert (reload_run(run).status, notes()) == ("canceled", "")


def confirm_without_signal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Confirm as a process does that dies before it requeues the run."""
    with monkeypatch.context() as patched:
        patched.setattr(confirmations, "decision_resolved", Signal())
        answer_confirmation(run)


def test_the_scheduler_resumes_a_confirmed_run_whose_signal_was_lost(
    worker: WorkerProcess,
    submit_calls: Callable[..., Run],
    notes: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = submit_calls("risk:b")
    worker.work()
    confirm_without_signal(run, monkeypatch)
    assert resume_settled_runs() == 1
    assert resume_settled_runs() == 0
    worker.work()
    assert (reload_run(run).status, notes()) == ("succeeded", "b")


def test_a_refusal_holds_after_its_rule_is_retired(
    worker: WorkerProcess,
    submit_calls: Callable[..., Run],
    confirm_rule: str,
    notes: Callable[[], str],
) -> None:
    run = submit_calls("risk:b")
    worker.work()
    retire_rule(confirm_rule, actor="t")
    submit_calls("risk:a")
    worker.work()  # the worker has the rules without the retired one in its cache
    assert notes() == "a"
    answer_confirmation(run, refuse)
    worker.work()
    assert ((reload_run(run).error or {})["errorCode"], notes()) == ("POLICY_DENIED", "a")


def test_an_answer_does_not_confirm_a_call(
    worker: WorkerProcess, principal: Principal, submit_calls: Callable[..., Run]
) -> None:
    run = submit_calls("risk:b")
    worker.work()
    with pytest.raises(InvalidInput, match="waits for confirmation"):
        answer_run(principal=principal, run_id=run.id, answer="yes")


def test_a_resumed_step_that_calls_otherwise_than_before_fails(
    worker: WorkerProcess,
    submit_calls: Callable[..., Run],
    notes: Callable[[], str],
    source: Path,
) -> None:
    run = submit_calls(f"from:{source},risk:b")
    worker.work()
    answer_confirmation(run)
    worker.work()  # the first call is made, the second one waits
    source.write_text("harmful")
    answer_confirmation(run)
    worker.work()
    error = reload_run(run).error or {}
    assert (reload_run(run).status, notes()) == ("failed", "harmless")
    assert error["details"]["causeCode"] == "STEP_CHANGED"


def test_the_approval_of_another_call_does_not_confirm_a_step(
    worker: WorkerProcess,
    principal: Principal,
    submit_calls: Callable[..., Run],
    notes: Callable[[], str],
) -> None:
    run = submit_calls("risk:a")
    worker.work()
    approved = decision_id(run)
    answer_confirmation(run)
    worker.work()
    other = submit_run(
        principal=principal,
        template_id="test_calling",
        inputs={**run.inputs, "do": ["risk:b"]},
        options={"mode": "async", "decisionId": approved},
    )
    worker.work()
    assert (Run.objects.get(id=other.run_id).waiting_for or {})["type"] == "confirmation"
    assert notes() == "a"


def test_a_decision_about_another_call_does_not_resume_the_run(
    worker: WorkerProcess, principal: Principal, submit_calls: Callable[..., Run]
) -> None:
    run = submit_calls("risk:b")
    worker.work()
    awaited = decision_id(run)
    call = tool_call_request(principal, "test_risk", {"text": "x"}, run_id=run.id, step_index=0)
    other = request_confirmation(call, authorize(call))
    confirm(decision_id=other.decision_id, by="admin:ann", how="admin")
    assert worker.work() == 0
    assert decision_id(run) == awaited != other.decision_id


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
def test_a_run_that_was_resumed_and_suspended_again_meanwhile_keeps_waiting(
    worker: WorkerProcess, submit_calls: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = submit_calls("risk:a", "risk:b")
    worker.work()
    first = decision_id(run)
    confirm_without_signal(run, monkeypatch)

    def apply_late(change: Transition) -> int | None:
        monkeypatch.setattr(resume, "apply", apply)
        at_once([lambda: (resume_settled_runs(), worker.work())])  # in another scheduler
        return apply(change)

    monkeypatch.setattr(resume, "apply", apply_late)
    assert resume_settled_runs() == 0
    assert (decision_id(run) != first, reload_run(run).ready) == (True, False)
