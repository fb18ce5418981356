"""A cancel is a transition: every reader sees it at once, and exactly one of many succeeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from decisions.foundation.errors import Forbidden, RunNotFound
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.journal.writer import Ending, write
from runs.lifecycle.lease import LeaseLost
from runs.models import TERMINAL, Run, RunEvent, RunStatus
from runs.queries.runs import get_run
from runs.submission.cancel import cancel_run
from tests.support.runs.concurrent_calls import at_once
from tests.support.runs.worker_rows import fresh, must_take, take

Submit = Callable[..., str]


def test_a_queued_run_is_canceled_and_never_starts(submit: Submit, principal: Principal) -> None:
    run_id = submit()
    result = cancel_run(principal=principal, run_id=run_id)
    assert result == {"success": True, "runId": run_id, "status": "canceled"}
    assert take("w1") is None


def test_the_error_of_a_canceled_run_has_the_actor_and_the_reason(
    submit: Submit, principal: Principal
) -> None:
    run_id = submit()
    cancel_run(principal=principal, run_id=run_id, reason="wrong pages")
    error = get_run(principal=principal, run_id=run_id)["error"]
    assert (error["errorCode"], error["actor"]) == ("RUN_CANCELED", "local")
    assert error["reason"] == "wrong pages"
    assert "wrong pages" in error["message"]
    entry = AuditEntry.objects.get(action="run.canceled")
    assert (entry.actor, entry.metadata["reason"]) == ("local", "wrong pages")


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_a_run_that_ended_is_not_canceled_and_does_not_change(
    make_run: Callable[..., Run], principal: Principal, status: RunStatus
) -> None:
    run = make_run(status=status)
    before = Run.objects.filter(id=run.id).values().get()
    result = cancel_run(principal=principal, run_id=run.id)
    assert result["success"] is False
    assert result["status"] == status
    assert result["reason"]
    assert Run.objects.filter(id=run.id).values().get() == before
    assert not RunEvent.objects.exists()


def test_cancel_against_finish_leaves_one_terminal_status(
    submit: Submit, principal: Principal
) -> None:
    for _ in range(3):
        run_id = submit()
        lease = must_take("w1")

        def finish() -> bool:
            try:
                write(lease, [], active_ms=1, ending=Ending(RunStatus.SUCCEEDED, result={}))  # noqa: B023
            except LeaseLost:
                return False
            return True

        finished, canceled = at_once(
            [finish, lambda: cancel_run(principal=principal, run_id=run_id)["success"]]  # noqa: B023
        )
        assert finished != canceled
        assert fresh(run_id).status == ("succeeded" if finished else "canceled")
        ends = RunEvent.objects.filter(run_id=run_id, type__in=["run.succeeded", "run.canceled"])
        assert ends.count() == 1


def test_a_write_of_a_worker_after_a_cancel_is_refused(
    submit: Submit, principal: Principal
) -> None:
    run_id = submit()
    lease = must_take("w1")
    cancel_run(principal=principal, run_id=run_id)
    with pytest.raises(LeaseLost):
        write(lease, [], active_ms=1, ending=Ending(RunStatus.SUCCEEDED, result={"late": True}))
    run = fresh(run_id)
    assert (run.status, run.result) == ("canceled", None)


def test_a_run_that_waits_for_a_person_can_be_canceled(
    make_run: Callable[..., Run], principal: Principal
) -> None:
    run = make_run(status="running", ready=False, waiting_for={"type": "answer"})
    assert cancel_run(principal=principal, run_id=run.id)["success"]
    assert fresh(run.id).waiting_for is None


def test_a_run_of_another_workspace_is_not_found_and_not_canceled(
    submit: Submit, outsider: Principal
) -> None:
    run_id = submit()
    with pytest.raises(RunNotFound):
        cancel_run(principal=outsider, run_id=run_id)
    assert fresh(run_id).status == "queued"


def test_without_the_scope_nothing_is_canceled(submit: Submit, principal: Principal) -> None:
    run_id = submit()
    workspace = principal.tenant_id, principal.workspace_id
    with pytest.raises(Forbidden):
        cancel_run(
            principal=Principal("token:r", *workspace, frozenset({"runs:read"}), "local"),
            run_id=run_id,
        )
    assert fresh(run_id).status == "queued"
