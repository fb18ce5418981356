"""Traces: the runner receives the trace context of the request, with a new span for each call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from decisions.identity.principals import Principal
from decisions.infra import trace_context
from runners.models import ExecutionTarget
from runners.targets.targets import TargetFields, allow_on_target, create_target_row
from runs.submission.services import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.rest import json_of
from tests.support.stub_runner import StubRunner, responding_with, stub_runner

pytest_plugins = ["tests.support.rest_fixtures", "tests.support.runner_fixtures"]
pytestmark = pytest.mark.usefixtures("open_loopback")


@pytest.fixture
def runner() -> Iterator[StubRunner]:
    """A runner that accepts every call."""
    with stub_runner(responding_with({"ok": True, "output": 1})) as made:
        yield made


@pytest.fixture
def target(principal: Principal, runner: StubRunner) -> ExecutionTarget:
    """The runner's target, on which echo is allowed."""
    place = principal.tenant_id, principal.workspace_id
    says = TargetFields(*place, "runner", "docker-runner", endpoint=runner.url)
    target = create_target_row(says, actor="test")
    allow_on_target(target, ["echo"], actor="test")
    return target


def done(idle_worker: WorkerProcess, principal: Principal, *calls: Any) -> str:
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
    return [asked.headers["traceparent"] for asked in runner.requests]


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


@pytest.mark.parametrize("brought", [None, "00-1-2-3", TRACE.upper()])
def test_a_run_without_a_trace_starts_one(
    idle_worker: WorkerProcess,
    principal: Principal,
    runner: StubRunner,
    target: ExecutionTarget,
    brought: str | None,
) -> None:
    call = {"name": "echo", "args": {}, "targetId": target.id}
    with trace_context.use_traceparent(brought):
        first = done(idle_worker, principal, call, call)
    done(idle_worker, principal, call)
    one, two, other = traces(runner)
    assert one[:36] == two[:36] == trace_context.traceparent_for(first)[:36] != other[:36]
    assert one != two


def test_a_direct_call_continues_the_trace_of_its_request(
    api: httpx.Client, runner: StubRunner, target: ExecutionTarget
) -> None:
    for headers in ({"traceparent": TRACE}, {}):
        json_of(api.post("/api/v1/tools/echo/call", json={"targetId": target.id}, headers=headers))
    brought, made = traces(runner)
    assert (brought[:36], brought != TRACE, made[:36] != TRACE[:36]) == (TRACE[:36], True, True)
