"""A retry is a new run that takes over the succeeded steps; a second retry request returns the
same run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from decisions.foundation.errors import Conflict, InvalidInput, RunNotFound, TrustNotAllowed
from decisions.identity.principals import Principal, admin_principal
from runs.models import Run, RunEvent, RunStep
from runs.submission.cancel import cancel_run
from runs.submission.retry import retry_run
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.runs.concurrent_calls import at_once
from tests.support.runs.worker_rows import fresh

ExecuteRun = Callable[[str], Run]


def failed_run(submit_unusual: Callable[..., str], execute_run: ExecuteRun, file: Path) -> Run:
    """Execute a run whose first step writes a line and whose second step fails."""
    return execute_run(
        submit_unusual("append one", "fail nul", "append three", file=str(file), effect="once")
    )


def test_succeeded_steps_are_taken_over_and_not_repeated(
    submit_unusual: Callable[..., str],
    execute_run: ExecuteRun,
    principal: Principal,
    tmp_path: Path,
) -> None:
    old = failed_run(submit_unusual, execute_run, tmp_path / "f")
    again = retry_run(principal=principal, run_id=old.id)
    run = fresh(again.run_id)
    assert (run.retry_of, run.done_steps, run.status) == (old.id, 1, "queued")
    execute_run(again.run_id)
    assert (tmp_path / "f").read_text() == "one\n"
    assert RunStep.objects.get(run=run, index=0).status == "succeeded"


def test_a_second_retry_request_returns_the_same_run(
    submit_unusual: Callable[..., str],
    execute_run: ExecuteRun,
    principal: Principal,
    tmp_path: Path,
) -> None:
    old = failed_run(submit_unusual, execute_run, tmp_path / "f")
    retries = at_once([partial(retry_run, principal=principal, run_id=old.id)] * 10)
    assert len({retry.run_id for retry in retries}) == 1
    assert sum(not retry.deduplicated for retry in retries) == 1
    assert Run.objects.count() == 2
    assert RunEvent.objects.filter(run_id=retries[0].run_id).count() == 1


def test_a_canceled_run_can_be_retried_and_completed(
    submit: Callable[..., str], principal: Principal, worker: WorkerProcess
) -> None:
    run_id = submit("ok")
    cancel_run(principal=principal, run_id=run_id)
    again = retry_run(principal=principal, run_id=run_id)
    worker.work()
    assert fresh(again.run_id).status == "succeeded"
    assert fresh(run_id).status == "canceled"


@pytest.mark.parametrize("status", ["queued", "running", "succeeded", "partial_success"])
def test_only_a_failed_or_canceled_run_can_be_retried(
    make_run: Callable[..., Run], principal: Principal, status: str
) -> None:
    run = make_run(status=status)
    with pytest.raises(Conflict, match=f"failed or was canceled can be retried; .* {status}"):
        retry_run(principal=principal, run_id=run.id)
    assert Run.objects.count() == 1


def test_a_run_of_another_workspace_cannot_be_retried(
    make_run: Callable[..., Run], outsider: Principal
) -> None:
    run = make_run(status="failed")
    with pytest.raises(RunNotFound):
        retry_run(principal=outsider, run_id=run.id)


def test_a_retry_by_an_operator_keeps_the_trust_of_the_remote_caller(
    make_run: Callable[..., Run], principal: Principal
) -> None:
    """Otherwise the second try would read a private address that the remote caller named."""
    workspace = {"tenant_id": principal.tenant_id, "workspace_id": principal.workspace_id}
    run = make_run(
        status="failed",
        trust="remote",
        template_id="batch_extract_pages",
        inputs={"urls": ["http://127.0.0.1/"]},
    )
    again = retry_run(principal=admin_principal("ann", **workspace), run_id=run.id)
    assert fresh(again.run_id).trust == "remote"
    local = make_run(status="failed", trust="remote", template_id="test_local_only")
    with pytest.raises(TrustNotAllowed):
        retry_run(principal=admin_principal("ann", **workspace), run_id=local.id)


def test_a_retry_can_be_retried(
    submit_unusual: Callable[..., str],
    execute_run: ExecuteRun,
    principal: Principal,
    tmp_path: Path,
) -> None:
    run_id = failed_run(submit_unusual, execute_run, tmp_path / "f").id
    for _ in range(2):
        run_id = execute_run(retry_run(principal=principal, run_id=run_id).run_id).id
    assert (tmp_path / "f").read_text() == "one\n"
    assert Run.objects.filter(retry_of__isnull=False).count() == 2


def test_a_retry_of_a_run_whose_steps_all_succeeded_ends_at_once(
    submit: Callable[..., str],
    execute_run: ExecuteRun,
    principal: Principal,
    make_run: Callable[..., Run],
) -> None:
    run_id = submit("ok", "ok")
    cancel_run(principal=principal, run_id=run_id)
    RunStep.objects.filter(run_id=run_id).update(status="succeeded", output={"did": "ok"})
    run = execute_run(retry_run(principal=principal, run_id=run_id).run_id)
    assert (run.status, run.done_steps) == ("succeeded", 2)


def test_a_retry_does_not_reuse_the_idempotency_key(principal: Principal) -> None:
    call = {"principal": principal, "template_id": "test_stepwise", "inputs": {"do": ["ok"]}}
    options = {"mode": "async", "idempotencyKey": "k"}
    first = submit_run(**call, options=options)  # type: ignore[arg-type]
    cancel_run(principal=principal, run_id=first.run_id)
    again = retry_run(principal=principal, run_id=first.run_id)
    assert again.run_id != first.run_id
    assert submit_run(**call, options=options).run_id == first.run_id  # type: ignore[arg-type]


def test_a_run_that_held_credentials_cannot_be_retried(
    make_run: Callable[..., Run], principal: Principal
) -> None:
    run = make_run(status="failed", holds_secrets=True)
    with pytest.raises(InvalidInput, match="credentials"):
        retry_run(principal=principal, run_id=run.id)
    assert Run.objects.count() == 1
