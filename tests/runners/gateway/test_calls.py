"""Tools on runners, called in a run and directly: policy check, progress events and audit."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import orjson
import pytest

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.errors import InvalidInput, PolicyDenied
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runners.models import ExecutionTarget
from runners.targets.runner_endpoint import probe_target
from runners.targets.targets import TargetFields, allow_on_target, create_target_row
from runs.models import Run, RunEvent, RunStep
from runs.submission.submit import submit_run
from runs.task_templates import tool_steps
from runs.worker.worker import WorkerProcess
from tests.services import free_port
from tests.support.audit.secret_search import collect_logs, every_file, every_row, find_secret
from tests.support.rest.rest import json_of, refusal
from tests.support.runners.stub_runner import (
    RunnerConnection,
    StubRunner,
    responding_with,
    stub_runner,
)

pytestmark = pytest.mark.usefixtures("open_loopback")

HELLO = {"updates": ["hel", "lo"], "result": {"ok": True, "output": "hello"}}


@pytest.fixture
def runner() -> Iterator[StubRunner]:
    """A runner that sends "hello" in two chunks."""
    with stub_runner(responding_with(HELLO)) as stub:
        yield stub


MakeTarget = Callable[..., ExecutionTarget]


@pytest.fixture
def make_target(principal: Principal) -> MakeTarget:
    """Create a runner target on which these tools are allowed: `make_target(url, "echo")`."""

    def make(endpoint: str, *allowed: str, **more: Any) -> ExecutionTarget:
        fields = TargetFields(
            principal.tenant_id,
            principal.workspace_id,
            "runner",
            "docker-runner",
            endpoint=endpoint,
            **{"auth_token": "s3cret", **more},
        )
        target = create_target_row(fields, actor="test")
        allow_on_target(target, allowed, actor="test", reason="test")
        return target

    return make


def execute_calls(
    idle_worker: WorkerProcess, principal: Principal, *calls: dict[str, Any], **inputs: Any
) -> Run:
    """Submit a run of these calls, let a worker execute it, and return the run."""
    submitted = submit_run(
        principal=principal,
        template_id="call_tools",
        inputs={"calls": list(calls), **inputs},
        options={"mode": "async"},
    )
    idle_worker.work()
    return Run.objects.get(id=submitted.run_id)


def metadata_of(action: str) -> list[dict[str, Any]]:
    return [entry.metadata for entry in AuditEntry.objects.filter(action=action).order_by("id")]


def test_a_run_calls_a_runner_and_publishes_its_progress(
    idle_worker: WorkerProcess, principal: Principal, runner: StubRunner, make_target: MakeTarget
) -> None:
    target = make_target(runner.url, "bash.exec")
    call = {"name": "bash.exec", "args": {"cmd": "printf hello"}, "targetId": target.id}
    run = execute_calls(idle_worker, principal, call)
    assert (run.status, run.result["results"]) == (
        "succeeded",
        [{"name": "bash.exec", "ok": True, "output": "hello"}],
    )
    request = runner.requests[0].json
    assert request["ctx"]["runId"] == run.id
    assert (request["ctx"]["sessionId"], request["ctx"]["runtimeMode"]) == (run.session_id, "local")
    assert runner.requests[0].headers["authorization"] == "Bearer s3cret"
    events = RunEvent.objects.filter(run_id=run.id, type="tool.update").order_by("seq")
    assert "".join(event.data["delta"] for event in events) == "hello"
    assert {event.data["toolCallId"] for event in events} == {request["ctx"]["toolCallId"]}
    assert [
        row["targetId"] for row in metadata_of("tool.called") + metadata_of("tool.succeeded")
    ] == [
        target.id,
        target.id,
    ]


def test_a_denied_call_is_not_sent_to_the_runner(
    idle_worker: WorkerProcess, principal: Principal, runner: StubRunner, make_target: MakeTarget
) -> None:
    target = make_target(runner.url)
    run = execute_calls(idle_worker, principal, {"name": "echo", "args": {}, "targetId": target.id})
    assert (run.status, run.error["details"]["causeCode"]) == ("failed", "POLICY_DENIED")
    assert runner.requests == []


def test_a_high_risk_tool_waits_for_confirmation(
    idle_worker: WorkerProcess, principal: Principal, runner: StubRunner, make_target: MakeTarget
) -> None:
    target = make_target(runner.url)
    run = execute_calls(
        idle_worker, principal, {"name": "bash.exec", "args": {}, "targetId": target.id}
    )
    assert (run.status, run.waiting_for is not None) == ("running", True)
    assert runner.requests == []


def test_a_failure_of_the_runner_fails_the_run_with_its_cause(
    idle_worker: WorkerProcess, principal: Principal, make_target: MakeTarget
) -> None:
    error = {"code": "EXIT_1", "message": "it ended with 1", "retryable": True}
    with stub_runner(responding_with({"ok": False, "error": error})) as runner:
        target = make_target(runner.url, "echo")
        run = execute_calls(
            idle_worker, principal, {"name": "echo", "args": {}, "targetId": target.id}
        )
    details = run.error["details"]
    assert (run.status, details["causeCode"]) == ("failed", "TOOL_EXEC_FAILED")
    assert (details["reason"], details["runnerCode"]) == ("runner", "EXIT_1")
    # the effect of a runner's tool is unknown: the call is never repeated
    assert len(runner.requests) == 1


def test_a_call_in_flight_when_its_worker_was_lost_is_not_sent_again(
    idle_worker: WorkerProcess, principal: Principal, runner: StubRunner, make_target: MakeTarget
) -> None:
    target = make_target(runner.url, "echo")
    submitted = submit_run(
        principal=principal,
        template_id="call_tools",
        inputs={"calls": [{"name": "echo", "args": {}, "targetId": target.id}]},
        options={"mode": "async"},
    )
    RunStep.objects.filter(run_id=submitted.run_id).update(status="started", attempts=1)
    idle_worker.work()
    run = Run.objects.get(id=submitted.run_id)
    assert (run.status, run.error["details"]["effect"]) == ("failed", "unknown")
    assert runner.requests == []


def test_a_call_whose_connection_breaks_is_not_repeated(
    idle_worker: WorkerProcess, principal: Principal, make_target: MakeTarget
) -> None:
    with stub_runner(RunnerConnection.reset) as runner:
        target = make_target(runner.url, "echo")
        run = execute_calls(
            idle_worker, principal, {"name": "echo", "args": {}, "targetId": target.id}
        )
    assert (run.status, run.error["details"]["effect"]) == ("failed", "unknown")
    assert len(runner.requests) == 1


def test_the_gateway_ends_the_longest_call_before_its_step_times_out(
    idle_worker: WorkerProcess,
    principal: Principal,
    make_target: MakeTarget,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runners.gateway.request.TIMEOUT_MAX_MS", 500)
    monkeypatch.setattr(tool_steps, "TIMEOUT_MAX_MS", 500)
    with stub_runner(RunnerConnection.hang) as runner:
        target = make_target(runner.url, "echo", config={"timeoutMs": 600_000})
        run = execute_calls(
            idle_worker, principal, {"name": "echo", "args": {}, "targetId": target.id}
        )
    details = run.error["details"]
    assert (details["causeCode"], details["reason"]) == ("TOOL_EXEC_FAILED", "timeout")


def test_a_large_output_is_stored_whole_in_an_artifact(
    idle_worker: WorkerProcess, principal: Principal, make_target: MakeTarget
) -> None:
    with stub_runner(responding_with({"ok": True, "output": "a" * 200_000})) as runner:
        target = make_target(runner.url, "echo")
        run = execute_calls(
            idle_worker, principal, {"name": "echo", "args": {}, "targetId": target.id}
        )
    (result,) = run.result["results"]
    assert (result["truncated"], len(result["output"]) < 70_000) == (True, True)
    assert result["artifactId"].startswith("art_")


def test_a_default_runner_performs_tools_that_are_not_built_in(
    idle_worker: WorkerProcess, principal: Principal, runner: StubRunner, make_target: MakeTarget
) -> None:
    target = make_target(runner.url, "*", is_default=True)
    run = execute_calls(idle_worker, principal, {"name": "echo", "args": {"a": 1}})
    assert run.status == "succeeded"
    step = RunStep.objects.get(run_id=run.id)
    assert (step.input["targetId"], step.effect) == (target.id, "once")


def test_a_tool_without_a_runner_is_refused_at_submission(
    principal: Principal, outsider: Principal, runner: StubRunner, make_target: MakeTarget
) -> None:
    target = make_target(runner.url, "*")
    for caller, target_id in ((principal, None), (principal, "target_x"), (outsider, target.id)):
        call = {"name": "echo", "args": {}} | ({"targetId": target_id} if target_id else {})
        with pytest.raises(InvalidInput):
            submit_run(principal=caller, template_id="call_tools", inputs={"calls": [call]})
    assert not Run.objects.exists()


def test_a_disabled_runner_is_denied_at_submission(
    principal: Principal, runner: StubRunner, make_target: MakeTarget
) -> None:
    disabled = make_target(runner.url, "*", enabled=False)
    call = {"name": "echo", "args": {}, "targetId": disabled.id}
    with pytest.raises(PolicyDenied):
        submit_run(principal=principal, template_id="call_tools", inputs={"calls": [call]})


def test_a_direct_call_is_performed_by_a_runner(
    api: httpx.Client, runner: StubRunner, make_target: MakeTarget
) -> None:
    target = make_target(runner.url, "bash.exec")
    body = {"args": {"cmd": "printf hello"}, "targetId": target.id}
    answer = json_of(api.post("/api/v1/tools/bash.exec/call", json=body))
    assert (answer["ok"], answer["output"]) == (True, "hello")
    ctx = runner.requests[0].json["ctx"]
    assert ctx["runId"] == answer["callId"]
    assert ctx["sessionId"].startswith("sess_")
    rows = metadata_of("tool.called") + metadata_of("tool.succeeded")
    assert [(row["callId"], row["targetId"]) for row in rows] == [(answer["callId"], target.id)] * 2
    assert all(row["argsDigest"] for row in rows)


def echo_token(connection: RunnerConnection) -> None:
    """Answer with the Authorization header, in pieces, in an output and in an error."""
    assert connection.request is not None
    header = connection.request.headers["authorization"]
    if connection.request.line.startswith("GET"):
        connection.answer(orjson.dumps([{"name": "bash.exec", "description": header}]))
        return
    encoded = base64.b64encode(header.removeprefix("Bearer ").encode()).decode()
    whole = {"ok": True, "output": {header: [header, encoded]}}
    broken = {"ok": False, "error": {"code": header, "message": header, "details": {"h": header}}}
    result = broken if connection.request.json["call"]["args"] else whole
    updates = [header[:9], *header[9:], " end"]
    connection.answer(orjson.dumps({"updates": updates, "result": result}))


def test_a_runner_that_echoes_the_header_gets_the_token_into_nothing(
    api: httpx.Client, idle_worker: WorkerProcess, principal: Principal, make_target: MakeTarget
) -> None:
    token = 'canary-<7a1f0c93">'
    with stub_runner(echo_token) as runner, collect_logs() as log:
        target = make_target(runner.url, "bash.exec", auth_token=token)
        probe_target(target, actor="test")
        call = {"name": "bash.exec", "targetId": target.id, "args": {}}
        ran = execute_calls(idle_worker, principal, call)
        assert ran.result["results"][0]["output"] == {"Bearer ***": ["Bearer ***", "***"]}
        execute_calls(idle_worker, principal, {**call, "args": {"fail": True}})
        answers = [
            api.post("/api/v1/tools/bash.exec/call", json={"args": args, "targetId": target.id})
            for args in ({}, {"fail": True})
        ]
    deltas = [event.data["delta"] for event in RunEvent.objects.filter(type="tool.update")]
    assert "".join(deltas).count("Bearer *** end") == 2
    sources: dict[str, str | bytes] = {
        "a row": every_row(),
        "a file": every_file(),
        "the log": "\n".join(log),
        "an answer": "".join(answer.text for answer in answers),
    }
    assert find_secret(token, sources) == []


def test_a_direct_call_without_a_matching_rule_is_denied(
    api: httpx.Client, runner: StubRunner, make_target: MakeTarget
) -> None:
    target = make_target(runner.url)
    for tool, status, code in (
        ("echo", 403, "POLICY_DENIED"),
        ("bash.exec", 202, "CONFIRMATION_REQUIRED"),
    ):
        answer = api.post(f"/api/v1/tools/{tool}/call", json={"targetId": target.id})
        assert (answer.status_code, answer.json()["errorCode"]) == (status, code)
    assert runner.requests == []


def test_a_deny_rule_overrides_an_allow_rule(
    api: httpx.Client, runner: StubRunner, make_target: MakeTarget
) -> None:
    target = make_target(runner.url, "*")
    create_rule(RuleFields("deny", tool="bash.exec", reason="test"), actor="test")
    answer = api.post("/api/v1/tools/bash.exec/call", json={"targetId": target.id})
    assert refusal(answer, 403)["errorCode"] == "POLICY_DENIED"
    assert runner.requests == []


def test_a_direct_call_of_a_disabled_runner_is_denied_and_audited(
    api: httpx.Client, runner: StubRunner, make_target: MakeTarget
) -> None:
    disabled = make_target(runner.url, "*", enabled=False)
    answer = api.post("/api/v1/tools/echo/call", json={"targetId": disabled.id})
    assert refusal(answer, 403)["errorCode"] == "POLICY_DENIED"
    assert metadata_of("tool.refused") == [{"tool": "echo", "code": "POLICY_DENIED"}]


def test_a_failed_direct_call_reports_the_cause(api: httpx.Client, make_target: MakeTarget) -> None:
    target = make_target(f"http://127.0.0.1:{free_port()}/execute", "*")
    answer = api.post("/api/v1/tools/echo/call", json={"targetId": target.id})
    problem = refusal(answer, 502)
    assert problem["errorCode"] == "TOOL_EXEC_FAILED"
    assert problem["details"] == {"reason": "connect", "effect": "none"}
    assert metadata_of("tool.failed")[0]["code"] == "TOOL_EXEC_FAILED"


def test_a_direct_call_to_an_unknown_tool_or_target_is_not_found(
    api: httpx.Client, principal: Principal
) -> None:
    unknown = api.post("/api/v1/tools/echo/call", json={})
    assert refusal(unknown, 404)["errorCode"] == "TOOL_NOT_FOUND"
    unknown_target = api.post("/api/v1/tools/echo/call", json={"targetId": "target_x"})
    assert refusal(unknown_target, 404)["errorCode"] == "TARGET_NOT_FOUND"


def test_a_large_output_of_a_direct_call_is_stored_whole_in_an_artifact(
    api: httpx.Client, make_target: MakeTarget
) -> None:
    with stub_runner(responding_with({"ok": True, "output": {"text": "a" * 200_000}})) as runner:
        target = make_target(runner.url, "echo")
        answer = json_of(api.post("/api/v1/tools/echo/call", json={"targetId": target.id}))
    assert (answer["truncated"], len(answer["output"]["text"]) < 70_000) == (True, True)
    assert answer["artifactIds"] == [answer["artifactId"]]
    whole = api.get(f"/api/v1/artifacts/{answer['artifactId']}/content").json()
    assert whole == {"text": "a" * 200_000}
