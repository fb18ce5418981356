"""Direct tool calls over REST and MCP: scopes, confirmations and audit events."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db import OperationalError

from decisions.authorization.confirmations import refuse
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.principals import DEFAULT_SCOPES, Principal, create_token
from decisions.models import AuditEntry, Decision
from runners.models import ExecutionTarget
from runners.targets.targets import TargetFields, change_target, create_target_row
from runs.models import Run
from tests.support.decisions.confirmations import confirm
from tests.support.rest.rest import refusal
from tests.support.runners.tool_client import ToolClient

SCENE = {"path": "game/scene/new.txt", "content": "a:b;\n"}
PREVIEW, WRITE = SCENE | {"dryRun": True}, SCENE | {"dryRun": False}


def audited(action: str) -> list[dict[str, Any]]:
    """Return the audit events of tool calls, oldest first."""
    rows = AuditEntry.objects.filter(action=action, resource_type="tool").order_by("id")
    return list(rows.values_list("metadata", flat=True))


def rule(verdict: str, tool: str) -> None:
    create_rule(RuleFields(verdict, tool=tool, reason="of a test"), actor="test")


def test_a_call_is_audited_before_and_after(tool_client: ToolClient, project: Path) -> None:
    assert tool_client.call("write_to_file", PREVIEW)[0] == "OK"
    assert tool_client.call("write_to_file", WRITE)[0] == "OK"
    started, ended = audited("tool.called"), audited("tool.succeeded")
    assert [metadata["callId"] for metadata in started] == [
        metadata["callId"] for metadata in ended
    ]
    assert (ended[1]["path"], ended[1]["snapshotId"][:5]) == (SCENE["path"], "snap_")
    assert ended[1]["targetId"] == ExecutionTarget.objects.get().id
    assert "a:b" not in str(AuditEntry.objects.values_list("metadata", flat=True))


def test_a_failed_call_is_audited_as_failed(tool_client: ToolClient, project: Path) -> None:
    code, error = tool_client.call("validate_script", {"path": "game/scene/absent.txt"})
    assert (code, error["recoverable"]) == ("E_NOT_FOUND", True)
    (ended,) = audited("tool.failed")
    assert (ended["code"], ended["ok"]) == ("E_NOT_FOUND", False)


def test_wrong_arguments_are_refused_before_the_call_starts(
    tool_client: ToolClient, project: Path
) -> None:
    code, error = tool_client.call("write_to_file", {"path": "a.txt", "content": 1, "dryRun": True})
    assert (code, error["details"]["errors"][0]["path"]) == ("E_BAD_ARGS", "content")
    assert error["hint"] == "请按照工具的参数说明修改。"
    assert not audited("tool.called")
    assert audited("tool.refused") == [{"tool": "write_to_file", "code": "E_BAD_ARGS"}]


def test_a_denied_tool_is_not_called(tool_client: ToolClient, project: Path) -> None:
    rule("deny", "write_to_file")
    code, error = tool_client.call("write_to_file", PREVIEW)
    assert (code, error["recoverable"]) == ("E_POLICY_VIOLATION", False)
    assert error["details"]["because"] == "rule"
    assert not audited("tool.called")
    assert AuditEntry.objects.filter(action="policy.denied").count() == 1


def test_a_call_that_a_person_confirmed_is_performed_by_the_same_call(
    tool_client: ToolClient, project: Path
) -> None:
    assert tool_client.call("write_to_file", PREVIEW)[0] == "OK"
    rule("confirm", "write_to_file")
    code, error = tool_client.call("write_to_file", WRITE)
    assert (code, error["recoverable"]) == ("E_POLICY_VIOLATION", True)
    assert tool_client.call("write_to_file", WRITE)[1]["details"] == error["details"]
    assert not (project / "game/scene/new.txt").exists()
    confirm(decision_id=error["details"]["decisionId"], by="admin:ann", how="admin")
    assert tool_client.call("write_to_file", WRITE)[0] == "OK"
    assert (project / "game/scene/new.txt").read_text() == "a:b;\n"


def test_a_call_that_a_person_refused_is_not_performed(
    tool_client: ToolClient, project: Path
) -> None:
    rule("confirm", "replace_in_file")
    args = {"path": "game/scene/start.txt", "find": "none", "replace": "x.png"}
    _, error = tool_client.call("replace_in_file", args)
    refuse(decision_id=error["details"]["decisionId"], by="admin:ann", how="admin")
    code, error = tool_client.call("replace_in_file", args)
    assert (code, error["details"]["because"]) == ("E_POLICY_VIOLATION", "refused")
    assert "none" in (project / "game/scene/start.txt").read_text()


def test_over_rest_a_waiting_call_answers_202_and_its_key_identifies_it(
    api: httpx.Client, project: Path
) -> None:
    rule("confirm", "replace_in_file")
    args = {"path": "game/scene/start.txt", "find": "none", "replace": "x.png"}
    url = "/api/v1/tools/replace_in_file/call"
    waiting = api.post(url, json={"args": args, "idempotencyKey": "one"})
    assert waiting.status_code == 202
    other = api.post(url, json={"args": args, "idempotencyKey": "two"})
    number = waiting.json()["error"]["details"]["decisionId"]
    assert other.json()["error"]["details"]["decisionId"] != number
    confirm(decision_id=number, by="admin:ann", how="admin")
    performed = api.post(url, json={"args": args, "idempotencyKey": "one"})
    assert (performed.status_code, performed.json()["output"]) == (200, {"count": 1})
    again = api.post(url, json={"args": args, "idempotencyKey": "one"})
    assert (again.status_code, again.json()) == (200, performed.json())
    assert audited("tool.refused") == []
    assert Decision.objects.count() == 2


def test_an_unknown_tool_answers_in_the_common_error_shape(
    api: httpx.Client, project: Path
) -> None:
    problem = refusal(api.post("/api/v1/tools/nope/call", json={}), 404)
    assert problem["errorCode"] == "TOOL_NOT_FOUND"


@pytest.mark.parametrize("body", ["[1]", '{"args": [], "x": 1}', "{", '{"args": {}, "args": {}}'])
def test_an_invalid_body_is_refused_in_the_error_shape_of_the_tool(
    api: httpx.Client, project: Path, body: str
) -> None:
    head = {"Content-Type": "application/json"}
    answer = api.post("/api/v1/tools/write_to_file/call", content=body, headers=head)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "E_BAD_ARGS")


def test_another_http_method_is_refused_in_the_error_shape_of_the_tool(
    api: httpx.Client, project: Path
) -> None:
    answer = api.get("/api/v1/tools/read_file/call")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    error = answer.json()["error"]
    assert (error["code"], error["recoverable"]) == ("E_UNSUPPORTED", True)
    assert error["hint"] == "请使用响应头 Allow 所列的方法。"
    problem = refusal(api.get("/api/v1/tools/page_open/call"), 405)
    assert problem["errorCode"] == "METHOD_NOT_ALLOWED"


def test_an_unavailable_database_answers_a_retryable_error(
    api: httpx.Client, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError

    monkeypatch.setattr("runs.calls.direct.call.find_target", fail)
    answer = api.post("/api/v1/tools/get_runtime_info/call", json={})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["recoverable"]) == (503, "E_TIMEOUT", True)
    assert error["hint"]


def test_read_tools_need_the_read_scope_and_write_tools_the_write_scope(
    client_with: Callable[..., httpx.Client], project: Path
) -> None:
    reader = client_with(scopes={"tools:read"})
    read = reader.post("/api/v1/tools/get_runtime_info/call", json={})
    assert read.status_code == 200
    write = reader.post("/api/v1/tools/write_to_file/call", json={"args": PREVIEW})
    assert (write.status_code, write.json()["error"]["details"]) == (403, {"scope": "tools:write"})
    without_scopes = client_with(scopes={"runs:write"})
    assert without_scopes.post("/api/v1/tools/get_runtime_info/call", json={}).status_code == 403
    assert without_scopes.get("/api/v1/tools").status_code == 403


def test_a_remote_caller_can_only_use_targets_of_its_workspace(
    client_with: Callable[..., httpx.Client], project: Path, settings: Any, tmp_path: Path
) -> None:
    remote = client_with(trust="remote")
    info = remote.post("/api/v1/tools/get_runtime_info/call", json={}).json()["output"]
    assert info["projectRoot"] == project.name  # the response never contains a path of the server
    other_workspace = client_with(trust="local", workspace="elsewhere")
    named = {"targetId": ExecutionTarget.objects.get().id}
    answer = other_workspace.post("/api/v1/tools/get_runtime_info/call", json=named)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "E_NOT_FOUND")
    settings.WORKSPACE = tmp_path
    answer = other_workspace.post("/api/v1/tools/get_runtime_info/call", json={})
    assert answer.json()["error"]["code"] == "E_TOOL_DISABLED"


def test_a_disabled_workspace_is_refused_before_a_confirmation_is_requested(
    tool_client: ToolClient, project: Path, principal: Principal
) -> None:
    rule("confirm", "write_to_file")
    target = ExecutionTarget.objects.get()
    fields = TargetFields(
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        name="game",
        is_default=True,
        enabled=False,
        config=target.config,
    )
    change_target(target.id, fields, actor="test")
    assert tool_client.call("write_to_file", PREVIEW)[0] == "E_TOOL_DISABLED"
    assert not Decision.objects.exists()


def test_a_call_uses_the_target_that_it_names(
    api: httpx.Client, project: Path, principal: Principal
) -> None:
    other = project.parent / "other"
    other.mkdir()
    fields = TargetFields(
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        name="other",
        config={"root": str(other)},
    )
    target = create_target_row(fields, actor="test")
    call = {"args": {}, "targetId": target.id}
    output = api.post("/api/v1/tools/get_runtime_info/call", json=call).json()["output"]
    assert output["projectRoot"] == str(other)


def test_scripts_and_pages_need_developer_mode_and_a_local_caller(
    tool_client: ToolClient, project: Path
) -> None:
    assert tool_client.call("execute_command", {"scriptName": "lint"})[0] == "E_TOOL_DISABLED"
    assert not audited("tool.called")


@pytest.mark.usefixtures("developer")
def test_a_remote_caller_cannot_run_scripts_in_developer_mode(
    client_with: Callable[..., httpx.Client], project: Path
) -> None:
    call = {"args": {"scriptName": "lint"}}
    answer = client_with(trust="remote").post("/api/v1/tools/execute_command/call", json=call)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "E_TOOL_DISABLED")


def test_file_tool_calls_create_no_run(tool_client: ToolClient, project: Path) -> None:
    assert tool_client.call("list_project_resources", {})[0] == "OK"
    assert not Run.objects.exists()


def test_runtime_info_contains_no_secret(
    tool_client: ToolClient, project: Path, settings: Any
) -> None:
    code, info = tool_client.call("get_runtime_info", {})
    assert (code, info["projectRoot"]) == ("OK", str(project))
    assert {"execution", "browser"} & set(info) == set()
    assert "write_to_file" in info["tools"]
    assert not [key for key in settings.CONTINUITY_SECRET_KEYS if key in str(info)]


@pytest.mark.usefixtures("developer")
def test_developer_mode_lists_the_scripts_and_pages_that_are_allowed(
    tool_client: ToolClient, project: Path
) -> None:
    _, info = tool_client.call("get_runtime_info", {})
    assert info["execution"]["allowedCommands"] == ["dev", "build", "lint"]
    assert info["browser"]["allowedHosts"] == ["localhost", "127.0.0.1"]


@pytest.mark.usefixtures("developer", "project")
def test_runtime_info_does_not_list_tools_that_are_not_offered(web: str, settings: Any) -> None:
    settings.CONTINUITY_MCP_TOOLSETS = ["workspace"]
    token = create_token(name="door", trust="local", scopes=DEFAULT_SCOPES)
    with closing(ToolClient(web, token, over="mcp")) as tool_client:
        _, info = tool_client.call("get_runtime_info", {})
    assert {"execution", "browser", "execute_command"} & {*info, *info["tools"]} == set()


@pytest.mark.usefixtures("developer")
def test_an_invalid_policy_file_is_reported_and_every_other_tool_fails(
    tool_client: ToolClient, project: Path
) -> None:
    (project / "continuity.workspace.json").write_text('{"policies": {"forbidenDirs": ["x"]}}')
    code, info = tool_client.call("get_runtime_info", {})
    assert (code, "forbidenDirs" in info["policyTrouble"]) == ("OK", True)
    assert {"execution", "browser"} & set(info) == set()
    assert tool_client.call("list_files", {"path": "."})[0] == "E_POLICY_VIOLATION"
    (project / "continuity.workspace.json").write_text("{}")
    assert "policyTrouble" not in tool_client.call("get_runtime_info", {})[1]


READ = {"path": "game/scene/start.txt"}


@pytest.mark.usefixtures("developer")
@pytest.mark.parametrize(
    ("rules", "tool", "args", "code"),
    [
        pytest.param(
            {"forbiddenDirs": ["scene"]}, "read_file", READ, "E_DENY_PATH", id="adds a name"
        ),
        pytest.param(
            {"forbiddenDirs": ["scene"]},
            "read_file",
            {"path": ".git/config"},
            "E_DENY_PATH",
            id="removes no name",
        ),
        pytest.param({"maxReadBytes": 5}, "read_file", READ, "E_TOO_LARGE", id="lowers the size"),
        pytest.param(
            {"maxReadBytes": 10**9},
            "read_file",
            {"path": "large.txt"},
            "E_TOO_LARGE",
            id="raises no size",
        ),
        pytest.param(
            {"writeRequiresDiff": False},
            "write_to_file",
            WRITE,
            "E_POLICY_VIOLATION",
            id="keeps previews",
        ),
        pytest.param(
            {"allowedCommands": []},
            "execute_command",
            {"scriptName": "lint"},
            "E_POLICY_VIOLATION",
            id="removes a script",
        ),
        pytest.param(
            {"allowedCommands": ["build"]},
            "execute_command",
            {"scriptName": "build"},
            "E_POLICY_VIOLATION",
            id="adds no script",
        ),
    ],
)
def test_the_policy_file_restricts_and_extends_nothing(
    api: httpx.Client,
    project: Path,
    settings: Any,
    rules: dict[str, Any],
    tool: str,
    args: dict[str, Any],
    code: str,
) -> None:
    policy = replace(settings.WORKSPACE_POLICY, max_read_bytes=100, allowed_commands=("lint",))
    settings.WORKSPACE_POLICY = policy
    (project / ".git").mkdir()
    (project / ".git/config").write_text("[core]")
    (project / "large.txt").write_text("x" * 101)
    scripts = {"scripts": {"lint": "true", "build": "true"}}
    (project / "package.json").write_text(json.dumps(scripts))
    (project / "continuity.workspace.json").write_text(json.dumps({"policies": rules}))
    response = api.post(f"/api/v1/tools/{tool}/call", json={"args": args}).json()
    assert "output" not in response
    assert response["error"]["code"] == code


def test_the_data_folder_of_an_installation_is_forbidden(
    tool_client: ToolClient, project: Path
) -> None:
    (project / ".continuity").mkdir()
    (project / ".continuity" / "keys").write_text("secret")
    assert tool_client.call("read_file", {"path": ".continuity/keys"})[0] == "E_DENY_PATH"
