"""Run tool calls as a durable run: validate all before the first, authorize each before it starts,
and execute each once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from artifacts.selectors import open_content
from decisions.authorization.authorize import tool_call_request
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.errors import ConfirmationRequired, Forbidden, InvalidInput
from decisions.identity.principals import Principal
from decisions.memory.objects import put_success_path
from decisions.models import AuditEntry, Decision
from runners.models import ExecutionTarget
from runners.targets.cache import target_state
from runners.targets.local_folder import LocalFolder, set_local_folder
from runners.targets.targets import TargetFields, create_target_row
from runners.tools.registry import get_tool, list_tools
from runs.calls.record import DirectCall
from runs.lifecycle.lease import LeaseLost
from runs.models import Run, RunStep
from runs.submission.retry import retry_run
from runs.submission.submit import submit_run
from runs.task_templates.builtin.call_tools import CallTools
from runs.task_templates.truncation import RESULT_BYTES
from runs.worker.worker import WorkerProcess
from tests.support.decisions.confirmations import confirm

SCENE = "game/scene/new.txt"
CONTENT = {"path": SCENE, "content": "a:b;\n"}
Call = dict[str, Any]


def call(name: str, **args: Any) -> Call:
    return {"name": name, "args": args}


PREVIEW, WRITE = (call("write_to_file", **CONTENT, dryRun=dry) for dry in (True, False))


@pytest.fixture
def submit_calls(principal: Principal, project: Path) -> Callable[..., str]:
    """Submit calls: `submit_calls(call(…), call(…), stopOnError=False)`."""

    def make(*calls: Call, caller: Principal = principal, **more: Any) -> str:
        return submit_run(
            principal=caller,
            template_id="call_tools",
            inputs={"calls": list(calls), **more},
            options={"mode": "async"},
        ).run_id

    return make


def execute_run(run_id: str, idle_worker: WorkerProcess) -> Run:
    """Let the worker run until the queue is empty; return the run."""
    idle_worker.work()
    return Run.objects.get(id=run_id)


def test_calls_run_in_order_on_the_default_target(
    submit_calls: Callable[..., str], idle_worker: WorkerProcess, project: Path
) -> None:
    run = execute_run(
        submit_calls(PREVIEW, WRITE, call("validate_script", path=SCENE)), idle_worker
    )
    assert run.status == "succeeded", run.error
    results = run.result["results"]
    assert [one["name"] for one in results] == ["write_to_file", "write_to_file", "validate_script"]
    assert results[1]["output"]["applied"] is True
    assert (project / SCENE).read_text() == "a:b;\n"


def test_a_failed_call_fails_the_run_and_its_code_is_the_cause_code(
    submit_calls: Callable[..., str], idle_worker: WorkerProcess, project: Path
) -> None:
    run = execute_run(
        submit_calls(WRITE, PREVIEW), idle_worker
    )  # a write without a preview is refused
    assert (run.status, run.error["errorCode"]) == ("failed", "STEP_EXECUTION_FAILED")
    assert run.error["details"]["causeCode"] == "E_POLICY_VIOLATION"
    assert run.error["step"] == {"step": 0, "name": "1. write_to_file"}
    assert not (project / SCENE).exists()


def test_without_stop_on_error_every_call_runs(
    submit_calls: Callable[..., str], idle_worker: WorkerProcess
) -> None:
    absent = call("validate_script", path="game/scene/absent.txt")
    run = execute_run(
        submit_calls(absent, call("get_runtime_info"), stopOnError=False), idle_worker
    )
    assert run.status == "partial_success"
    first, second = run.result["results"]
    assert (first["ok"], first["error"]["code"], second["ok"]) == (False, "E_NOT_FOUND", True)
    run = execute_run(submit_calls(absent, absent, stopOnError=False), idle_worker)
    assert (run.status, run.error["details"]["causeCode"]) == ("failed", "E_NOT_FOUND")
    assert len(run.error["details"]["items"]) == 2


@pytest.mark.parametrize(
    ("invalid_call", "message"),
    [
        (call("nope"), "no tool nope"),
        (call("write_to_file", path="a.txt", content=1, dryRun=True), "content"),
        (call("get_runtime_info") | {"targetId": "target_nope"}, "target_nope"),
        (call("read_page", url="https://example.com/") | {"targetId": "target_x"}, "no target"),
        (call("execute_command", scriptName="lint"), "developer mode"),
    ],
)
def test_an_invalid_call_rejects_the_whole_run(
    submit_calls: Callable[..., str], invalid_call: Call, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message) as raised:
        submit_calls(PREVIEW, invalid_call)
    assert raised.value.message.startswith("inputs.calls.1")
    assert not Run.objects.exists()


def test_developer_mode_of_a_command_line_applies_to_its_run_but_not_to_a_retry(
    submit_calls: Callable[..., str],
    idle_worker: WorkerProcess,
    project: Path,
    principal: Principal,
) -> None:
    tool_calls = call("get_runtime_info"), call("list_files", path="absent")
    set_local_folder(LocalFolder(project, is_named=True, developer=True))
    try:
        run_id = submit_calls(*tool_calls)
    finally:
        set_local_folder(None)
    assert execute_run(run_id, idle_worker).status == "failed"
    step = RunStep.objects.get(run_id=run_id, index=0)
    output = step.output["output"]
    assert "execution" in output
    assert {"write_to_file", "execute_command"} <= set(output["tools"])
    script = call("execute_command", scriptName="lint") | {"targetId": step.input["targetId"]}
    with pytest.raises(InvalidInput, match="developer mode"):
        submit_calls(script)
    again = retry_run(principal=principal, run_id=run_id).run_id
    assert "developerTarget" not in Run.objects.get(id=again).options


def test_a_file_tool_in_a_run_requires_the_scope_of_the_tool(
    submit_calls: Callable[..., str], principal: Principal
) -> None:
    reader = Principal(
        "token:reader",
        principal.tenant_id,
        principal.workspace_id,
        frozenset({"runs:write", "tools:read"}),
        "local",
    )
    assert submit_calls(call("get_runtime_info"), caller=reader)
    with pytest.raises(Forbidden):
        submit_calls(PREVIEW, caller=reader)


def test_a_page_tool_in_a_run_requires_the_scope_of_the_tool(
    submit_calls: Callable[..., str], principal: Principal
) -> None:
    caller = replace(principal, scopes=frozenset({"runs:write"}))
    with pytest.raises(Forbidden, match="tools:"):
        submit_calls(call("read_page", url="https://example.com/"), caller=caller)
    assert not Run.objects.exists()


def test_an_approved_call_runs_after_the_secret_key_is_rotated(
    idle_worker: WorkerProcess, project: Path, principal: Principal, settings: Any
) -> None:
    create_rule(RuleFields("confirm", tool="get_runtime_info", reason="test"), actor="test")
    target = ExecutionTarget.objects.get()
    call_request = tool_call_request(
        principal, "get_runtime_info", {}, target_id=target.id, key="k", is_builtin=True
    )
    call_request = replace(call_request, target_state=target_state(target))
    tool = get_tool("get_runtime_info")
    assert tool is not None
    submission: dict[str, Any] = {
        "principal": principal,
        "template_id": "call_tools",
        "options": {"mode": "async"},
        "inputs": {"calls": [call("get_runtime_info")]},
        "direct_call": DirectCall(principal, tool, call_request, tool.timeout_ms),
    }
    with pytest.raises(ConfirmationRequired):
        submit_run(**submission)
    confirm(decision_id=Decision.objects.get().id, by="admin:ann", how="admin")
    run_id = submit_run(**submission).run_id
    settings.CONTINUITY_SECRET_KEYS = ["n" * 40, *settings.CONTINUITY_SECRET_KEYS]
    run = execute_run(run_id, idle_worker)
    assert (run.status, run.waiting_for) == ("succeeded", None)


def test_a_run_keeps_the_default_target_of_its_submit(
    submit_calls: Callable[..., str],
    idle_worker: WorkerProcess,
    project: Path,
    principal: Principal,
) -> None:
    run_id = submit_calls(PREVIEW, WRITE)
    first = ExecutionTarget.objects.get()
    ExecutionTarget.objects.update(is_default=False)
    (project.parent / "other").mkdir()
    fields = TargetFields(
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        name="other",
        is_default=True,
        config={"root": str(project.parent / "other")},
    )
    create_target_row(fields, actor="test")
    assert execute_run(run_id, idle_worker).status == "succeeded"
    assert (project / SCENE).exists()
    assert RunStep.objects.filter(run_id=run_id)[0].input["targetId"] == first.id


def test_a_write_waits_for_a_person_and_earlier_calls_do_not_run_again(
    submit_calls: Callable[..., str], idle_worker: WorkerProcess, project: Path
) -> None:
    create_rule(RuleFields("confirm", tool="replace_in_file", reason="test"), actor="test")
    change = call("replace_in_file", path="game/scene/start.txt", find="none", replace="x.png")
    run = execute_run(submit_calls(PREVIEW, WRITE, change), idle_worker)
    assert (run.status, run.waiting_for["type"]) == ("running", "confirmation")
    (project / SCENE).unlink()
    confirm(decision_id=Decision.objects.get().id, by="admin:ann", how="admin")
    run = execute_run(run.id, idle_worker)
    assert run.status == "succeeded", run.error
    assert "x.png" in (project / "game/scene/start.txt").read_text()
    assert not (project / SCENE).exists()


def test_a_write_interrupted_by_a_lost_worker_is_not_repeated(
    submit_calls: Callable[..., str], idle_worker: WorkerProcess, project: Path
) -> None:
    run_id = submit_calls(PREVIEW, WRITE)
    RunStep.objects.filter(run_id=run_id, index=0).update(status="succeeded", output={"ok": True})
    RunStep.objects.filter(run_id=run_id, index=1).update(status="started", attempts=1)
    run = execute_run(run_id, idle_worker)
    assert run.error["details"]["effect"] == "unknown"
    assert not (project / SCENE).exists()


@pytest.mark.parametrize("target_id", ["target_nope", "the default"])
def test_a_success_path_without_workspace_tools_accepts_no_target(
    project: Path, principal: Principal, target_id: str
) -> None:
    stored = put_success_path(
        principal=principal,
        call={
            "user_id": "ann",
            "name": "look",
            "intent": "look at a page",
            "required_slots": [],
            "slot_definitions": {},
            "success_criteria": "it is read",
            "confidence": "high",
            "validity": "long",
            "tags": [],
            "procedure": [{"tool": "read_page", "args": {"url": "https://example.com/"}}],
        },
    )
    if target_id == "the default":
        target_id = ExecutionTarget.objects.get().id
    with pytest.raises(InvalidInput, match="targetId: no step"):
        submit_run(
            principal=principal,
            template_id="replay_success_path",
            inputs={"objectId": stored["item"]["object_id"], "targetId": target_id},
        )


def audited(run_id: str, *actions: str) -> list[dict[str, Any]]:
    """Return the audit entries of a run, oldest first."""
    rows = AuditEntry.objects.filter(resource_id=run_id, action__in=actions).order_by("id")
    return [{"action": row.action, **row.metadata} for row in rows]


CALLS = ("tool.called", "tool.succeeded", "tool.failed")


def test_a_failed_call_is_audited_as_failed_though_its_step_succeeded(
    submit_calls: Callable[..., str], idle_worker: WorkerProcess
) -> None:
    absent = call("validate_script", path="game/scene/absent.txt")
    run = execute_run(
        submit_calls(absent, call("get_runtime_info"), stopOnError=False), idle_worker
    )
    rows = audited(run.id, *CALLS)
    assert [one["action"] for one in rows] == [
        "tool.called",
        "tool.failed",
        "tool.called",
        "tool.succeeded",
    ]
    assert (rows[1]["ok"], rows[1]["code"]) == (False, "E_NOT_FOUND")
    assert (rows[3]["tool"], rows[3]["ok"]) == ("get_runtime_info", True)


@pytest.mark.parametrize("stop_on_error", [True, False])
def test_a_denied_call_has_no_called_event(
    submit_calls: Callable[..., str], idle_worker: WorkerProcess, stop_on_error: bool
) -> None:
    create_rule(RuleFields("deny", tool="write_to_file", reason="test"), actor="test")
    run = execute_run(
        submit_calls(PREVIEW, call("get_runtime_info"), stopOnError=stop_on_error), idle_worker
    )
    called = [] if stop_on_error else ["get_runtime_info"]
    assert [one["tool"] for one in audited(run.id, "tool.called")] == called
    assert [one["tool"] for one in audited(run.id, "policy.denied")] == ["write_to_file"]


def test_a_write_is_audited_before_and_after(
    submit_calls: Callable[..., str], idle_worker: WorkerProcess
) -> None:
    run = execute_run(submit_calls(PREVIEW, WRITE, WRITE), idle_worker)
    rows = audited(run.id, *CALLS)
    assert [one["action"] for one in rows] == [
        "tool.called",
        "tool.succeeded",
        "tool.called",
        "tool.succeeded",
        "tool.called",
        "tool.failed",
    ]
    for one in rows:
        assert (one["path"], one["targetId"]) == (SCENE, ExecutionTarget.objects.get().id)
    assert (rows[2]["step"], rows[2]["argsDigest"]) == (1, rows[3]["argsDigest"])
    assert rows[3]["snapshotId"] == run.steps.get(index=1).output["output"]["snapshotId"]
    assert rows[5]["code"] == run.error["details"]["causeCode"]


def test_a_step_may_take_as_long_as_the_timeout_of_its_tool(
    submit_calls: Callable[..., str], idle_worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tool in list_tools():
        assert CallTools().step_limit_ms({"tool": tool.name}) > tool.timeout_ms
    monkeypatch.setattr(CallTools, "step_timeout_ms", 1)
    assert (
        execute_run(submit_calls(call("list_files", path="game/scene")), idle_worker).status
        == "succeeded"
    )


def test_a_read_is_audited_before_and_after(
    submit_calls: Callable[..., str], idle_worker: WorkerProcess
) -> None:
    run = execute_run(submit_calls(call("list_files", path="game/scene")), idle_worker)
    called, succeeded = audited(run.id, *CALLS)
    assert (called["action"], succeeded["action"]) == ("tool.called", "tool.succeeded")
    assert called["callId"] == succeeded["callId"]
    assert (called["path"], called["targetId"]) == ("game/scene", ExecutionTarget.objects.get().id)


@pytest.mark.parametrize("tool_call", [PREVIEW, call("read_file", path="game/scene/start.txt")])
def test_a_call_is_audited_though_its_step_was_never_recorded(
    submit_calls: Callable[..., str],
    idle_worker: WorkerProcess,
    monkeypatch: pytest.MonkeyPatch,
    tool_call: Call,
) -> None:
    def lose_the_lease(row: RunStep, *_: object) -> None:
        raise LeaseLost(row.run_id)

    monkeypatch.setattr("runs.journal.step_records.succeeded", lose_the_lease)
    run = execute_run(submit_calls(tool_call), idle_worker)
    assert run.status == "running"
    (called,) = audited(run.id, *CALLS)
    assert (called["action"], called["path"]) == ("tool.called", tool_call["args"]["path"])


def test_a_call_fails_when_its_target_is_disabled_after_the_submit(
    submit_calls: Callable[..., str], idle_worker: WorkerProcess
) -> None:
    run_id = submit_calls(PREVIEW)
    ExecutionTarget.objects.update(enabled=False)
    run = execute_run(run_id, idle_worker)
    assert run.error["details"]["causeCode"] == "E_TOOL_DISABLED"
    assert not audited(run_id, *CALLS)


def test_a_large_output_is_truncated_in_its_step_and_complete_in_an_artifact(
    submit_calls: Callable[..., str],
    idle_worker: WorkerProcess,
    project: Path,
    principal: Principal,
) -> None:
    text = "海:b;\n" * 50_000
    (project / "game/scene/long.txt").write_text(text)
    run = execute_run(
        submit_calls(*[call("read_file", path="game/scene/long.txt")] * 3), idle_worker
    )
    assert run.status == "succeeded", run.error
    for step in run.steps.all():
        output = step.output
        assert len(json.dumps(output, ensure_ascii=False).encode()) < RESULT_BYTES + 200
        assert output["truncated"] is True
        _, file = open_content(principal=principal, artifact_id=output["artifactId"])
        with file:
            assert json.load(file)["content"] == text


def test_a_success_path_may_have_steps_of_workspace_tools(
    idle_worker: WorkerProcess, project: Path, principal: Principal
) -> None:
    stored = put_success_path(
        principal=principal,
        call={
            "user_id": "ann",
            "name": "new scene",
            "intent": "write a scene",
            "required_slots": ["scene"],
            "slot_definitions": {"scene": "its path"},
            "procedure": [
                {
                    "tool": "write_to_file",
                    "args": {"path": "${scene}", "content": "a:b;\n", "dryRun": dry},
                }
                for dry in (True, False)
            ],
            "success_criteria": "it is there",
            "confidence": "high",
            "validity": "long",
            "tags": [],
        },
    )
    run_id = submit_run(
        principal=principal,
        template_id="replay_success_path",
        options={"mode": "async"},
        inputs={"objectId": stored["item"]["object_id"], "slots": {"scene": SCENE}},
    ).run_id
    assert execute_run(run_id, idle_worker).status == "succeeded"
    assert (project / SCENE).read_text() == "a:b;\n"
