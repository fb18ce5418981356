"""The tools of runners: read by a probe, stored on their targets, listed for permitted callers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.principals import DEFAULT_SCOPES, Principal
from decisions.models import AuditEntry
from runners.targets.runner_endpoint import probe_target
from runners.targets.targets import TargetFields, allow_on_target, change_target
from tests.services import free_port
from tests.support.rest.rest import json_of
from tests.support.runners.runner_fixtures import MakeRunner
from tests.support.runners.stub_runner import Respond, RunnerConnection, stub_runner

pytestmark = pytest.mark.usefixtures("open_loopback")

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
ECHO = {"name": "echo", "description": "Say it again.", "inputSchema": SCHEMA, "risk": "low"}


def respond_with_tools(*tools: Any, status: int = 200) -> Respond:
    """Answer `GET /tools` with these tools, and every other request with ok."""

    def answer(connection: RunnerConnection) -> None:
        assert connection.request is not None
        is_about_tools = connection.request.line.startswith("GET /tools ")
        body = {"tools": list(tools)} if is_about_tools else {"ok": True}
        connection.answer(json.dumps(body).encode(), status if is_about_tools else 200)

    return answer


def listed_tools(api: httpx.Client) -> dict[str, Any]:
    """Return the runners' tools of GET /tools, by name."""
    tools = json_of(api.get("/api/v1/tools"))["tools"]
    return {tool["name"]: tool for tool in tools if tool["kind"] == "docker-runner"}


def test_a_probe_reads_the_tools_of_a_runner(
    make_runner: MakeRunner, client_with: Callable[..., httpx.Client]
) -> None:
    admin = client_with(scopes=DEFAULT_SCOPES | {"targets:admin"}, trust="local")
    with stub_runner(respond_with_tools(ECHO, {"name": ""})) as runner:
        target = make_runner(endpoint=runner.url, auth_token="t0ken")
        probed = json_of(admin.post(f"/api/v1/targets/{target.id}/probe"))
    assert (probed["tools"], probed["toolsError"]) == (["echo"], None)
    assert [request.line for request in runner.requests] == [
        "GET /health HTTP/1.1",
        "GET /tools HTTP/1.1",
    ]
    assert runner.requests[1].headers["authorization"] == "Bearer t0ken"
    assert AuditEntry.objects.get(action="target.probed").metadata["tools"] == 1


def test_published_tools_are_limited_and_checked(make_runner: MakeRunner) -> None:
    # The validator knows this document and would not fetch it; some hosts do.
    remote = {"properties": {"a": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}}
    tools = [{"name": "*"}, {"name": "odd", "inputSchema": remote}]
    tools += [{"name": f"tool{number}"} for number in range(300)]
    with stub_runner(respond_with_tools(*tools)) as runner:
        target = probe_target(make_runner(endpoint=runner.url), actor="test")
    stored = {offer["name"]: offer for offer in target.catalogue}
    assert stored["odd"]["inputSchema"] == {"type": "object"}
    assert "*" not in stored
    assert len(stored) <= 200


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda line: line.answer(b"", 500), "It answered 500"),
        (lambda line: line.answer(b"<html></html>"), "not valid JSON"),
        (lambda line: line.answer(b" " * 400_000 + b"[]"), "more than 262144 bytes"),
        (lambda line: line.answer(b"[" * 100 + b"]" * 100), "not valid JSON"),
        (lambda line: line.answer(b'{"tools": 5}'), "did not answer with a list"),
        (RunnerConnection.reset, "connection was interrupted"),
    ],
)
def test_a_failed_tool_listing_keeps_the_earlier_tools(
    make_runner: MakeRunner, answer: Respond, message: str
) -> None:
    respond_ok = respond_with_tools(ECHO)
    has_failed: list[bool] = []

    def respond(connection: RunnerConnection) -> None:
        about_tools = connection.request is not None and connection.request.line.startswith(
            "GET /tools "
        )
        (answer if has_failed and about_tools else respond_ok)(connection)

    with stub_runner(respond) as runner:
        target = probe_target(make_runner(endpoint=runner.url), actor="test")
        has_failed.append(True)
        probe_target(target, actor="test")
    target.refresh_from_db()
    assert target.probe_error is None
    assert message in str(target.catalogue_error)
    assert [offer["name"] for offer in target.catalogue] == ["echo"]


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_runner_without_a_tool_listing_publishes_no_tools(
    make_runner: MakeRunner, status: int
) -> None:
    with stub_runner(respond_with_tools(ECHO, status=status)) as runner:
        target = probe_target(make_runner(endpoint=runner.url), actor="test")
    target.refresh_from_db()
    assert (target.catalogue, target.catalogue_error) == ([], None)


def test_a_new_endpoint_discards_the_stored_tools(
    make_runner: MakeRunner, principal: Principal
) -> None:
    with stub_runner(respond_with_tools(ECHO)) as runner:
        target = probe_target(make_runner(endpoint=runner.url), actor="test")
    workspace = principal.tenant_id, principal.workspace_id
    same = TargetFields(*workspace, "renamed", "docker-runner", endpoint=runner.url)
    assert change_target(target.id, same, actor="test").catalogue
    other_endpoint = f"http://127.0.0.1:{free_port()}/execute"
    other = TargetFields(*workspace, "moved", "docker-runner", endpoint=other_endpoint)
    assert change_target(target.id, other, actor="test").catalogue == []


def test_the_list_of_tools_has_the_targets_of_each_tool_and_their_policy(
    api: httpx.Client, make_runner: MakeRunner
) -> None:
    first = make_runner(name="a", config={"tools": [ECHO]})
    second = make_runner(name="b", is_default=True, config={"tools": [ECHO, {"name": "ls"}]})
    disabled = make_runner(name="c", enabled=False, config={"tools": [{"name": "bash.exec"}]})
    allow_on_target(first, ["echo"], actor="test", reason="test")
    tools = listed_tools(api)
    assert set(tools) == {"echo", "ls", "bash.exec"}
    echo = tools["echo"]
    assert (echo["inputSchema"], echo["effect"], echo["risk"]) == (SCHEMA, "external", "low")
    assert [
        (target["targetId"], target["isDefault"], target["policy"]) for target in echo["targets"]
    ] == [
        (second.id, True, "deny"),
        (first.id, False, "allow"),
    ]
    assert tools["ls"]["risk"] == "high"
    (target,) = tools["bash.exec"]["targets"]
    assert (target["targetId"], target["enabled"], target["policy"]) == (
        disabled.id,
        False,
        "confirm",
    )


def test_a_tool_that_a_rule_allows_on_a_target_is_listed_there(
    api: httpx.Client, make_runner: MakeRunner
) -> None:
    target, other = make_runner(), make_runner(name="other")
    allow_on_target(target, ["deploy"], actor="test", reason="test")
    create_rule(
        RuleFields("confirm", tool="wipe", target_id=target.id, reason="test"), actor="test"
    )
    create_rule(RuleFields("deny", tool="rm", target_id=target.id, reason="test"), actor="test")
    create_rule(RuleFields("allow", tool="everywhere", reason="test"), actor="test")
    create_rule(
        RuleFields(
            "allow", "workspace", other.workspace_id or "", "x", "target_gone", reason="test"
        ),
        actor="test",
    )
    tools = listed_tools(api)
    assert {name: tool["inputSchema"] for name, tool in tools.items()} == {
        "deploy": {"type": "object"},
        "wipe": {"type": "object"},
    }
    assert [listed["policy"] for listed in tools["wipe"]["targets"]] == ["confirm"]


def test_a_tool_with_two_different_schemas_is_listed_with_a_general_one(
    api: httpx.Client, make_runner: MakeRunner
) -> None:
    make_runner(name="a", config={"tools": [{**ECHO, "description": ""}]})
    make_runner(name="b", config={"tools": [{"name": "echo", "description": "Shout."}]})
    echo = listed_tools(api)["echo"]
    assert (echo["inputSchema"], echo["description"]) == ({"type": "object"}, "Shout.")
    assert echo["risk"] == "high"


def test_tools_of_another_workspace_are_not_listed(
    make_runner: MakeRunner, client_with: Callable[..., httpx.Client]
) -> None:
    make_runner(config={"tools": [ECHO]})
    make_runner(workspace_id=None, config={"tools": [{"name": "shared"}]})
    assert listed_tools(client_with(workspace="elsewhere", trust="local")).keys() == {"shared"}


def test_a_runners_tool_may_have_the_name_of_a_local_tool(
    api: httpx.Client, make_runner: MakeRunner
) -> None:
    make_runner(config={"tools": [{"name": "read_file"}]})
    tools = json_of(api.get("/api/v1/tools"))["tools"]
    kinds = [tool["kind"] for tool in tools if tool["name"] == "read_file"]
    assert kinds == ["workspace", "docker-runner"]
