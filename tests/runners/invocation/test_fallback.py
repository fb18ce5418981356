"""Unreachable runners: which calls fall back to local tools, which cannot, how each is reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.errors import InvalidInput
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runners.models import ExecutionTarget
from runners.targets.targets import (
    TargetFields,
    allow_on_target,
    change_target,
    create_target_row,
    delete_target,
)
from runs.models import Run, RunEvent
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.services import free_port
from tests.support.rest.rest import json_of, refusal
from tests.support.runners.stub_runner import RunnerConnection, responding_with, stub_runner

pytestmark = pytest.mark.usefixtures("open_loopback")

MakeTarget = Callable[..., ExecutionTarget]


@pytest.fixture
def folder_target(principal: Principal, tmp_path: Path, settings: Any) -> ExecutionTarget:
    """Create the workspace's own folder with one file."""
    settings.WORKSPACE_ROOTS = (tmp_path,)
    root = tmp_path / "game"
    root.mkdir()
    (root / "here.txt").write_text("from here\n")
    fields = TargetFields(
        principal.tenant_id,
        principal.workspace_id,
        "game",
        is_default=True,
        config={"root": str(root)},
    )
    return create_target_row(fields, actor="test")


@pytest.fixture
def make_target(principal: Principal) -> MakeTarget:
    """Create a runner's target on which every tool is allowed."""

    def make(endpoint: str | None = None, on_unreachable: str = "fallback_local") -> Any:
        fields = TargetFields(
            principal.tenant_id,
            principal.workspace_id,
            "runner",
            "docker-runner",
            endpoint=endpoint or f"http://127.0.0.1:{free_port()}/execute",
            config={"onUnreachable": on_unreachable},
        )
        target = create_target_row(fields, actor="test")
        allow_on_target(target, ["*"], actor="test", reason="test")
        return target

    return make


def execute_call(idle_worker: WorkerProcess, principal: Principal, name: str, **call: Any) -> Run:
    submitted = submit_run(
        principal=principal,
        template_id="call_tools",
        options={"mode": "async"},
        inputs={"calls": [{"name": name, **call}]},
    )
    idle_worker.work()
    return Run.objects.get(id=submitted.run_id)


def rows(action: str) -> list[dict[str, Any]]:
    return [entry.metadata for entry in AuditEntry.objects.filter(action=action).order_by("id")]


READ = {"path": "here.txt"}


def test_a_reachable_runner_executes_a_tool_with_the_name_of_a_local_one(
    api: httpx.Client,
    idle_worker: WorkerProcess,
    principal: Principal,
    folder_target: ExecutionTarget,
    make_target: MakeTarget,
) -> None:
    with stub_runner(responding_with({"ok": True, "output": "from there"})) as runner:
        target = make_target(runner.url)
        body = {"args": READ, "targetId": target.id}
        assert (
            json_of(api.post("/api/v1/tools/read_file/call", json=body))["output"] == "from there"
        )
        run = execute_call(idle_worker, principal, "read_file", args=READ, targetId=target.id)
    assert run.result["results"][0]["output"] == "from there"
    assert [request.json["call"] for request in runner.requests] == [
        {"name": "read_file", "args": READ}
    ] * 2
    local = json_of(api.post("/api/v1/tools/read_file/call", json={"args": READ}))
    assert "from here" in str(local["output"])
    assert rows("tool.fell_back") == []


def test_a_direct_call_falls_back_to_the_local_tool(
    api: httpx.Client, folder_target: ExecutionTarget, make_target: MakeTarget
) -> None:
    target = make_target()
    body = {"args": READ, "targetId": target.id}
    result = json_of(api.post("/api/v1/tools/read_file/call", json=body))
    assert "from here" in str(result["output"])
    assert result["fellBackFrom"] == target.id
    (row,) = rows("tool.fell_back")
    assert (row["targetId"], row["reason"]) == (target.id, "connect")
    assert [one["targetId"] for one in rows("tool.called")] == [target.id, folder_target.id]
    assert len(rows("tool.failed")) == len(rows("tool.succeeded")) == 1


def test_a_run_falls_back_and_emits_an_event(
    idle_worker: WorkerProcess,
    principal: Principal,
    folder_target: ExecutionTarget,
    make_target: MakeTarget,
) -> None:
    target = make_target()
    run = execute_call(idle_worker, principal, "read_file", args=READ, targetId=target.id)
    assert run.status == "succeeded"
    assert "from here" in str(run.result["results"][0]["output"])
    assert run.inputs["calls"][0]["fallbackTargetId"] == folder_target.id
    event = RunEvent.objects.get(run_id=run.id, type="tool.fell_back")
    assert event.data == {
        "step": 0,
        "tool": "read_file",
        "targetId": target.id,
        "reason": "connect",
    }
    assert [row["targetId"] for row in rows("tool.fell_back")] == [target.id]


def test_a_call_that_may_have_reached_the_runner_does_not_fall_back(
    api: httpx.Client,
    idle_worker: WorkerProcess,
    principal: Principal,
    folder_target: ExecutionTarget,
    make_target: MakeTarget,
) -> None:
    with stub_runner(RunnerConnection.reset) as runner:
        target = make_target(runner.url)
        body = {"args": READ, "targetId": target.id}
        problem = refusal(api.post("/api/v1/tools/read_file/call", json=body), 502)
        run = execute_call(idle_worker, principal, "read_file", args=READ, targetId=target.id)
    assert problem["errorCode"] == "TOOL_EXEC_FAILED"
    assert (run.status, run.error["details"]["effect"]) == ("failed", "unknown")
    assert rows("tool.fell_back") == []


@pytest.mark.parametrize(("tool", "fallback"), [("bash.exec", "none"), ("read_page", "none")])
def test_a_tool_without_a_local_version_does_not_fall_back_and_reports_it(
    api: httpx.Client,
    idle_worker: WorkerProcess,
    principal: Principal,
    make_target: MakeTarget,
    tool: str,
    fallback: str,
) -> None:
    target = make_target()
    response = api.post(f"/api/v1/tools/{tool}/call", json={"targetId": target.id})
    problem = refusal(response, 502)
    assert problem["details"]["fallback"] == fallback
    assert "fall back to" in problem["message"]
    run = execute_call(idle_worker, principal, tool, targetId=target.id)
    assert (run.status, run.error["details"]["fallback"]) == ("failed", fallback)
    assert rows("tool.fell_back") == []


def test_with_on_unreachable_deny_the_call_fails(
    api: httpx.Client, folder_target: ExecutionTarget, make_target: MakeTarget
) -> None:
    target = make_target(on_unreachable="deny")
    body = {"args": READ, "targetId": target.id}
    problem = refusal(api.post("/api/v1/tools/read_file/call", json=body), 502)
    assert problem["details"] == {"reason": "connect", "effect": "none"}


def test_a_fallback_is_checked_by_policy_and_by_the_local_schema(
    api: httpx.Client,
    idle_worker: WorkerProcess,
    principal: Principal,
    folder_target: ExecutionTarget,
    make_target: MakeTarget,
) -> None:
    target = make_target()
    run = execute_call(idle_worker, principal, "read_file", args={"nope": 1}, targetId=target.id)
    assert (run.status, run.error["details"]["causeCode"]) == ("failed", "E_BAD_ARGS")
    create_rule(
        RuleFields("deny", tool="read_file", target_id=folder_target.id, reason="test"),
        actor="test",
    )
    run = execute_call(idle_worker, principal, "read_file", args=READ, targetId=target.id)
    assert (run.status, run.error["details"]["causeCode"]) == ("failed", "POLICY_DENIED")
    body = {"args": READ, "targetId": target.id}
    response = api.post("/api/v1/tools/read_file/call", json=body)
    assert response.json()["error"]["code"] == "E_POLICY_VIOLATION"


def test_a_call_to_a_target_disabled_after_the_submit_is_denied_and_audited(
    idle_worker: WorkerProcess, principal: Principal, make_target: MakeTarget
) -> None:
    with stub_runner(responding_with({"ok": True, "output": 1})) as runner:
        target = make_target(runner.url)
        submitted = submit_run(
            principal=principal,
            template_id="call_tools",
            options={"mode": "async"},
            inputs={"calls": [{"name": "echo", "targetId": target.id}]},
        )
        disabled = TargetFields(
            target.tenant_id,
            target.workspace_id,
            "off",
            "docker-runner",
            endpoint=runner.url,
            enabled=False,
        )
        change_target(target.id, disabled, actor="test")
        idle_worker.work()
    run = Run.objects.get(id=submitted.run_id)
    assert (run.status, run.error["details"]["causeCode"]) == ("failed", "POLICY_DENIED")
    (row,) = rows("policy.denied")
    assert (row["tool"], row["targetId"]) == ("echo", target.id)
    assert row["argsDigest"]
    assert runner.requests == []


def test_a_target_of_another_workspace_is_not_found_for_local_tool_names_either(
    client_with: Callable[..., httpx.Client], outsider: Principal, make_target: MakeTarget
) -> None:
    target = make_target()
    api = client_with(workspace="elsewhere", trust="local")
    responses = [
        api.post("/api/v1/tools/read_file/call", json={"args": READ, "targetId": one})
        for one in (target.id, "target_missing")
    ]
    assert {response.status_code for response in responses} == {404}
    first, second = (response.text for response in responses)
    assert first.replace(target.id, "") == second.replace("target_missing", "")
    assert rows("tool.fell_back") == []


def test_a_fallback_target_is_validated_at_submit(
    principal: Principal, folder_target: ExecutionTarget, make_target: MakeTarget
) -> None:
    target = make_target()
    for name, target_id, fallback_id in (
        ("read_file", None, folder_target.id),
        ("echo", target.id, folder_target.id),
        ("read_file", target.id, "target_missing"),
        ("read_file", target.id, target.id),
    ):
        call = {"name": name, "args": READ, "fallbackTargetId": fallback_id}
        call |= {"targetId": target_id} if target_id else {}
        with pytest.raises(InvalidInput, match="fallbackTargetId"):
            submit_run(principal=principal, template_id="call_tools", inputs={"calls": [call]})
    assert not Run.objects.exists()


def test_a_call_to_a_deleted_target_fails_without_a_confirmation(
    worker: WorkerProcess, principal: Principal, make_target: MakeTarget
) -> None:
    target = make_target()
    calls = [{"name": "bash.exec", "args": {"cmd": "x"}, "targetId": target.id}]
    submitted = submit_run(
        principal=principal,
        template_id="call_tools",
        options={"mode": "async"},
        inputs={"calls": calls},
    )
    delete_target(target.id, actor="test")
    worker.work()
    run = Run.objects.get(id=submitted.run_id)
    assert (run.status, run.waiting_for) == ("failed", None)
    assert run.error["details"]["causeCode"] == "TARGET_NOT_FOUND"
    assert rows("tool.called") == []
