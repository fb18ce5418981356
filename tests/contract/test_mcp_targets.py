"""Test the toolset `targets` over MCP: the tools of runners, listed and called directly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from decisions.foundation.validation.json_schema import compile_schema
from decisions.identity.principals import Principal, create_token
from decisions.models import AuditEntry, Decision
from runners.models import ExecutionTarget
from runners.targets.targets import TargetFields, allow_on_target, create_target_row
from tests.contract.mcp_host import INITIALIZE, Host, error_of, structured
from tests.contract.mcp_http_host import SseHost, WebHost
from tests.support.runners.stub_runner import (
    StubRunner,
    responding_with,
    stub_runner,
)

pytestmark = pytest.mark.usefixtures("open_loopback")

SCHEMA = {
    "type": "object",
    "properties": {"cmd": {"type": "string"}},
    "required": ["cmd"],
    "additionalProperties": False,
}
BASH = {"name": "bash.exec", "description": "Run a command line.", "inputSchema": SCHEMA}
HELLO = {"updates": ["hel", "lo"], "result": {"ok": True, "output": "hello"}}
MakeTarget = Callable[..., ExecutionTarget]


@pytest.fixture
def runner() -> Iterator[StubRunner]:
    """Start a runner that outputs hello in two parts."""
    with stub_runner(responding_with(HELLO)) as stub:
        yield stub


@pytest.fixture
def make_target(principal: Principal) -> MakeTarget:
    """Return a function that creates a target with tools: `make_target(url, BASH, allow=["*"])`."""

    def make(endpoint: str, *tools: Any, allow: tuple[str, ...] = (), **more: Any) -> Any:
        fields = TargetFields(
            principal.tenant_id,
            more.pop("workspace_id", principal.workspace_id),
            more.pop("name", "builder"),
            "docker-runner",
            endpoint=endpoint,
            config={"tools": list(tools)},
            **more,
        )
        target = create_target_row(fields, actor="test")
        allow_on_target(target, allow, actor="test", reason="test")
        return target

    return make


def listed(host: Host) -> dict[str, dict[str, Any]]:
    """Return the listed tools of targets by their MCP names."""
    tools = host.request("tools/list", {})["result"]["tools"]
    return {tool["name"]: tool for tool in tools if "continuity" in tool.get("_meta", {})}


def test_a_runners_tool_is_listed_with_its_schema_and_real_name(
    host: Host, make_target: MakeTarget
) -> None:
    target = make_target("http://127.0.0.1:1/", BASH, allow=("bash.exec",))
    tool = listed(host)["bash_exec"]
    assert tool["inputSchema"] == SCHEMA
    assert tool["_meta"]["continuity"] == {"tool": "bash.exec", "targets": [target.id]}
    assert "Run a command line." in tool["description"]
    assert "builder" in tool["description"]
    assert "call_tools" in tool["description"]
    hints = tool.get("annotations", {})
    # A tool that says nothing is destructive and acts on the outside, by the protocol's defaults.
    assert (hints.get("destructiveHint", True), hints.get("openWorldHint", True)) == (True, True)
    assert not hints.get("readOnlyHint", False)
    assert not hints.get("idempotentHint", False)


def test_the_tool_list_stays_valid_for_hosts_whatever_a_runner_offers(
    host: Host, make_target: MakeTarget
) -> None:
    names = ["a.b", "a/b", "read_file", "工具", "x" * 128]
    unusual_tools = [{"name": name, "description": "d" * 3000} for name in names]
    make_target("http://127.0.0.1:1/", *unusual_tools, allow=("*",))
    target = ExecutionTarget.objects.get()
    rooted = {"type": "object", "oneOf": [{"required": ["a"]}], "properties": {"a b": {}}}
    target.catalogue = [{"name": "rooted", "description": "", "inputSchema": rooted}]
    target.save()
    tools = host.request("tools/list", {})["result"]["tools"]
    assert len({tool["name"] for tool in tools}) == len(tools)
    for tool in tools:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool["name"])
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            assert schema["type"] == "object"
            assert not {"oneOf", "anyOf", "allOf"} & set(schema)
            compile_schema(schema)
    assert len(listed(host)) == 6


def test_a_tool_that_policy_denies_is_not_listed_and_a_call_is_denied(
    host: Host, make_target: MakeTarget, runner: StubRunner
) -> None:
    make_target(runner.url, BASH, {"name": "deploy"})
    make_target(runner.url, {"name": "off"}, allow=("off",), enabled=False, name="off")
    assert set(listed(host)) == {"bash_exec"}
    assert "A person has to confirm it" in listed(host)["bash_exec"]["description"]
    for name in ("deploy", "off"):
        assert error_of(host.call(name, {}))["errorCode"] == "POLICY_DENIED"
    assert runner.requests == []
    assert AuditEntry.objects.filter(action="policy.denied").count() == 1
    assert AuditEntry.objects.filter(action="tool.refused").count() == 1


def test_a_call_is_performed_audited_and_returned_as_an_object(
    host: Host, make_target: MakeTarget, runner: StubRunner
) -> None:
    target = make_target(runner.url, BASH, allow=("bash.exec",))
    answer = structured(host.call("bash_exec", {"cmd": "printf hello"}))
    assert (answer["output"], answer["targetId"]) == ("hello", target.id)
    assert runner.requests[0].json["call"] == {"name": "bash.exec", "args": {"cmd": "printf hello"}}
    rows = AuditEntry.objects.filter(action__in=["tool.called", "tool.succeeded"])
    assert [row.metadata["callId"] for row in rows] == [answer["callId"]] * 2
    assert all(row.metadata["argsDigest"] and row.resource_id == "bash.exec" for row in rows)
    assert {row.actor for row in rows} == {host.actor}


def test_updates_are_sent_as_progress_if_the_host_requests_it(
    host: Host, make_target: MakeTarget, runner: StubRunner
) -> None:
    make_target(runner.url, BASH, allow=("bash.exec",))
    params = {"name": "bash_exec", "arguments": {"cmd": "x"}, "_meta": {"progressToken": "p"}}
    request_id = host.start_request("tools/call", params)
    messages = [host.receive()]
    while messages[-1].get("id") != request_id:
        messages.append(host.receive())
    updates = [
        message["params"]
        for message in messages[:-1]
        if message["method"] == "notifications/progress"
    ]
    values = [message["progress"] for message in updates]
    assert values == sorted(set(values))
    assert "".join(message["message"] for message in updates[1:]) == "hello"


def test_a_call_requires_a_confirmation_if_policy_demands_one(
    host: Host, make_target: MakeTarget, runner: StubRunner
) -> None:
    make_target(runner.url, BASH)
    error = error_of(host.call("bash_exec", {"cmd": "x"}))
    assert error["errorCode"] == "CONFIRMATION_REQUIRED"
    assert Decision.objects.get().tool == "bash.exec"
    assert runner.requests == []


def test_the_caller_chooses_the_runner_if_several_offer_a_tool(
    host: Host, make_target: MakeTarget, runner: StubRunner
) -> None:
    tool = {
        "name": "deploy",
        "inputSchema": {"type": "object", "properties": {"targetId": {"type": "string"}}},
    }
    first = make_target(runner.url, tool, allow=("*",))
    second = make_target(runner.url, tool, allow=("*",), name="other")
    schema = listed(host)["deploy"]["inputSchema"]
    assert schema["required"] == ["continuityTarget"]
    assert set(schema["properties"]["continuityTarget"]["enum"]) == {first.id, second.id}
    for wrong in ({}, {"continuityTarget": "target_x"}, {"continuityTarget": 5}):
        assert error_of(host.call("deploy", wrong))["errorCode"] == "INVALID_PARAMETER"
    args = {"continuityTarget": second.id, "targetId": "its own"}
    assert structured(host.call("deploy", args))["targetId"] == second.id
    assert [one.json["call"]["args"] for one in runner.requests] == [{"targetId": "its own"}]


def test_the_default_runner_is_used_if_the_call_names_none(
    host: Host, make_target: MakeTarget, runner: StubRunner
) -> None:
    make_target(runner.url, BASH, allow=("*",), name="other")
    default = make_target(runner.url, BASH, allow=("*",), is_default=True)
    assert listed(host)["bash_exec"]["inputSchema"]["required"] == ["cmd"]
    assert structured(host.call("bash_exec", {"cmd": "x"}))["targetId"] == default.id


def test_a_runner_tool_with_the_name_of_a_built_in_tool_gets_its_own_name(
    host: Host, make_target: MakeTarget, runner: StubRunner
) -> None:
    make_target(runner.url, {"name": "list_files"}, allow=("*",))
    (name,) = listed(host)
    assert re.fullmatch("list_files_[0-9a-f]{8}", name)
    assert structured(host.call(name, {"path": "."}))["output"] == "hello"
    assert runner.requests[0].json["call"] == {"name": "list_files", "args": {"path": "."}}


def test_a_long_list_is_bounded(host: Host, principal: Principal, make_target: MakeTarget) -> None:
    target = make_target("http://127.0.0.1:1/", allow=("*",))
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": "b" * 9000}}}
    target.catalogue = [
        {"name": f"tool{number}", "description": "", "inputSchema": schema} for number in range(200)
    ]
    target.save()
    tools = listed(host)
    assert len(tools) == 128
    assert len(json.dumps(list(tools.values()))) < 300_000


def test_the_trace_context_of_a_call_is_sent_to_the_runner(
    host: Host, make_target: MakeTarget, runner: StubRunner
) -> None:
    make_target(runner.url, BASH, allow=("bash.exec",))
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    params = {"name": "bash_exec", "arguments": {"cmd": "x"}, "_meta": {"traceparent": trace}}
    structured(host.request("tools/call", params))
    sent = runner.requests[0].headers["traceparent"]
    assert (sent[:36], sent != trace) == (trace[:36], True)


def test_no_list_notifications_are_announced_to_a_client_without_a_stream(host: Host) -> None:
    if not isinstance(host, WebHost) or isinstance(host, SseHost):
        return  # test_mcp_list_changes covers those
    capabilities = host.request("initialize", INITIALIZE)["result"]["capabilities"]
    assert not capabilities["tools"].get("listChanged")


def test_a_caller_without_the_scope_has_no_runner_tools(
    web: str, principal: Principal, make_target: MakeTarget
) -> None:
    make_target("http://127.0.0.1:1/", BASH, allow=("bash.exec",))
    scopes = frozenset({"runs:read", "tools:read"})
    host = WebHost(web, create_token(name="reader", scopes=scopes, trust="local"))
    assert listed(host) == {}
    assert host.call("bash_exec", {"cmd": "x"})["error"]["code"] == -32602
    host.close()
