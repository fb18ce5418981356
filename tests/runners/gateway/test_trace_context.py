"""Traces: the runner receives the trace context of the request, with a new span for each call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from decisions.foundation.infra import trace_context
from decisions.identity.principals import Principal
from runners.models import ExecutionTarget
from runners.targets.targets import TargetFields, allow_on_target, create_target_row
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.rest.rest import json_of
from tests.support.runners.stub_runner import StubRunner, responding_with, stub_runner

pytestmark = pytest.mark.usefixtures("open_loopback")


@pytest.fixture
def runner() -> Iterator[StubRunner]:
    """A runner that accepts every call."""
    with stub_runner(responding_with({"ok": True, "output": 1})) as stub:
        yield stub


@pytest.fixture
def target(principal: Principal, runner: StubRunner) -> ExecutionTarget:
    """The runner's target, on which echo is allowed."""
    workspace = principal.tenant_id, principal.workspace_id
    fields = TargetFields(*workspace, "runner", "docker-runner", endpoint=runner.url)
    target = create_target_row(fields, actor="test")
    allow_on_target(target, ["echo"], actor="test", reason="test")
    return target


def execute_calls(idle_worker: WorkerProcess, principal: Principal, *calls: Any) -> str:
    submitted = submit_run(
        principal=principal,
        template_id="call_tools",
        inputs={"calls": list(calls)},
        options={"mode": "async"},
    )
    idle_worker.work()
    return submitted.run_id


TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def traces(runner: StubRunner) -> list[str]:
    return [request.headers["traceparent"] for request in runner.requests]


def test_a_run_continues_the_trace_of_its_request(
    api: httpx.Client, idle_worker: WorkerProcess, runner: StubRunner, target: ExecutionTarget
) -> None:
    call = {"name": "echo", "args": {}, "targetId": target.id}
    body = {
        "templateId": "call_tools",
        "inputs": {"calls": [call, call]},
        "options": {"mode": "async"},
    }
    run_id = json_of(api.post("/api/v1/runs", json=body, headers={"traceparent": TRACE}), 202)[
        "runId"
    ]
    idle_worker.work()
    first, second = traces(runner)
    assert first[:36] == second[:36] == TRACE[:36]
    assert len({first, second, TRACE}) == 3
    assert "traceparent" not in str(json_of(api.get(f"/api/v1/runs/{run_id}")))


@pytest.mark.parametrize("received", [None, "00-1-2-3", TRACE.upper()])
def test_a_run_without_a_trace_starts_one(
    idle_worker: WorkerProcess,
    principal: Principal,
    runner: StubRunner,
    target: ExecutionTarget,
    received: str | None,
) -> None:
    call = {"name": "echo", "args": {}, "targetId": target.id}
    with trace_context.use_traceparent(received):
        run_id = execute_calls(idle_worker, principal, call, call)
    execute_calls(idle_worker, principal, call)
    first_span, second_span, other_span = traces(runner)
    assert (
        first_span[:36]
        == second_span[:36]
        == trace_context.traceparent_for(run_id)[:36]
        != other_span[:36]
    )
    assert first_span != second_span


def test_a_direct_call_continues_the_trace_of_its_request(
    api: httpx.Client, runner: StubRunner, target: ExecutionTarget
) -> None:
    for headers in ({"traceparent": TRACE}, {}):
        json_of(api.post("/api/v1/tools/echo/call", json={"targetId": target.id}, headers=headers))
    continued, started = traces(runner)
    assert (continued[:36], continued != TRACE, started[:36] != TRACE[:36]) == (
        TRACE[:36],
        True,
        True,
    )
