"""A worker caches policy and the runner's target after its first call. A later change of either
applies to the next call all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from decisions.authorization.policy_rules import RuleFields, create_rule, retire_rule
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, PolicyRule
from runners.models import ExecutionTarget
from runners.targets.targets import (
    TargetFields,
    allow_on_target,
    change_target,
    create_target_row,
    delete_target,
)
from runs.models import OpenCall, Run
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.runners.stub_runner import StubRunner, responding_with, stub_runner

pytestmark = pytest.mark.usefixtures("open_loopback")

HELLO = responding_with({"ok": True, "output": "hello"})


@pytest.fixture
def worker(principal: Principal) -> Iterator[WorkerProcess]:
    """Start a worker that runs only when the test calls `work()`."""
    worker = WorkerProcess()
    yield worker
    worker.close()


@pytest.fixture
def runner() -> Iterator[StubRunner]:
    """Start a runner that answers every call with "hello"."""
    with stub_runner(HELLO) as runner:
        yield runner


@pytest.fixture
def target_fields(principal: Principal, runner: StubRunner) -> TargetFields:
    """Return the fields of the runner's target."""
    return TargetFields(
        principal.tenant_id, principal.workspace_id, "runner", "docker-runner", endpoint=runner.url
    )


@pytest.fixture
def target(
    worker: WorkerProcess, principal: Principal, target_fields: TargetFields
) -> ExecutionTarget:
    """Create a runner's target that allows `echo`, and make one call to it."""
    target = create_target_row(target_fields, actor="test", target_id="target_known")
    allow_on_target(target, ["echo"], actor="test", reason="test")
    assert execute(worker, submit_calls(principal)).status == "succeeded"
    return target


def submit_calls(principal: Principal, calls: int = 1) -> str:
    """Submit a run of calls and return its id; no worker has claimed it yet."""
    call: dict[str, Any] = {"name": "echo", "args": {}, "targetId": "target_known"}
    return submit_run(
        principal=principal,
        template_id="call_tools",
        inputs={"calls": [call] * calls},
        options={"mode": "async"},
    ).run_id


def execute(worker: WorkerProcess, run_id: str) -> Run:
    """Let the worker run until it is idle; return the run."""
    worker.work()
    return Run.objects.get(id=run_id)


def test_the_next_call_queries_neither_rules_nor_the_target(
    target: ExecutionTarget,
    worker: WorkerProcess,
    principal: Principal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse_read(*_: Any) -> Any:
        raise AssertionError("it was read again")

    run_id = submit_calls(principal, calls=3)
    monkeypatch.setattr("runs.calls.target.find_runner", refuse_read)
    monkeypatch.setattr("decisions.authorization.policy._rules", refuse_read)
    run = execute(worker, run_id)
    assert (run.status, run.done_steps) == ("succeeded", 3)


def test_each_call_is_audited_at_its_start_and_at_its_end(
    target: ExecutionTarget, worker: WorkerProcess, principal: Principal
) -> None:
    run = execute(worker, submit_calls(principal, calls=2))
    rows = AuditEntry.objects.filter(resource_id=run.id, action__startswith="tool.").order_by("id")
    entries = [(row.action, row.metadata["callId"]) for row in rows]
    first, second = entries[0][1], entries[2][1]
    assert entries == [
        ("tool.called", first),
        ("tool.succeeded", first),
        ("tool.called", second),
        ("tool.succeeded", second),
    ]
    assert not OpenCall.objects.exists()


def test_a_new_deny_rule_applies_to_the_next_call(
    target: ExecutionTarget, worker: WorkerProcess, principal: Principal, runner: StubRunner
) -> None:
    run_id = submit_calls(principal)
    create_rule(RuleFields("deny", tool="echo", reason="test"), actor="test")
    run = execute(worker, run_id)
    assert (run.status, run.error["details"]["causeCode"]) == ("failed", "POLICY_DENIED")
    assert (len(runner.requests), AuditEntry.objects.filter(action="policy.denied").count()) == (
        1,
        1,
    )


def test_a_retired_allow_rule_no_longer_applies(
    target: ExecutionTarget, worker: WorkerProcess, principal: Principal, runner: StubRunner
) -> None:
    run_id = submit_calls(principal)
    retire_rule(PolicyRule.objects.get(tool="echo").key, actor="test")
    assert execute(worker, run_id).error["details"]["causeCode"] == "POLICY_DENIED"
    assert len(runner.requests) == 1


def test_a_disabled_target_is_not_called(
    target: ExecutionTarget,
    worker: WorkerProcess,
    principal: Principal,
    runner: StubRunner,
    target_fields: TargetFields,
) -> None:
    run_id = submit_calls(principal)
    change_target(target.id, replace(target_fields, enabled=False), actor="test")
    assert execute(worker, run_id).error["details"]["causeCode"] == "POLICY_DENIED"
    assert len(runner.requests) == 1


def test_a_target_with_a_new_endpoint_is_called_there(
    target: ExecutionTarget,
    worker: WorkerProcess,
    principal: Principal,
    runner: StubRunner,
    target_fields: TargetFields,
) -> None:
    run_id = submit_calls(principal)
    with stub_runner(HELLO) as other:
        change_target(
            target.id,
            replace(target_fields, endpoint=other.url, auth_token="second-token"),
            actor="test",
        )
        assert execute(worker, run_id).status == "succeeded"
    assert (len(runner.requests), len(other.requests)) == (1, 1)
    assert other.requests[0].headers["authorization"] == "Bearer second-token"


def test_a_new_target_with_the_id_of_a_deleted_one_replaces_the_cached_one(
    target: ExecutionTarget,
    worker: WorkerProcess,
    principal: Principal,
    runner: StubRunner,
    target_fields: TargetFields,
) -> None:
    run_id = submit_calls(principal)
    delete_target(target.id, actor="test")
    with stub_runner(HELLO) as other:
        fields = replace(target_fields, endpoint=other.url)
        new_target = create_target_row(fields, actor="test", target_id=target.id)
        allow_on_target(new_target, ["echo"], actor="test", reason="test")
        assert execute(worker, run_id).status == "succeeded"
    assert (len(runner.requests), len(other.requests)) == (1, 1)
