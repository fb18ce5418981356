"""Test that a client is notified of changes of its tool list if its protocol revision allows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from django.db import DatabaseError

from decisions.identity.principals import Principal, create_token
from mcp_server.tools import list_changes
from runners.targets.targets import TargetFields, allow_on_target, create_target_row
from tests.contract.mcp_host import INITIALIZE, TIMEOUT_S, Host, PrincipalTransport, StdioHost
from tests.contract.mcp_http_host import HEADERS, MODERN, MODERN_META, data_of
from tests.support.rest.rest import bearer

pytestmark = pytest.mark.usefixtures("open_loopback")

TRANSPORTS = ("stdio", "sse")  # at /mcp such a client has no stream and polls
CHANGED = "notifications/tools/list_changed"
LISTEN = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}


@pytest.fixture(autouse=True)
def poll_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll the lists at a short interval."""
    monkeypatch.setattr(list_changes, "POLL_S", 0.05)


@pytest.fixture
def add_runner_tool(principal: Principal) -> Callable[[str], None]:
    """Return a function that adds a runner with a tool."""

    def make(tool: str) -> None:
        workspace = principal.tenant_id, principal.workspace_id
        fields = TargetFields(*workspace, tool, "docker-runner", endpoint="http://127.0.0.1:1/")
        allow_on_target(
            create_target_row(fields, actor="test"), [tool], actor="test", reason="test"
        )

    return make


def tool_names(host: Host) -> set[str]:
    return {tool["name"] for tool in host.request("tools/list", {})["result"]["tools"]}


def wait_for_change(host: Host) -> None:
    while host.receive().get("method") != CHANGED:
        pass


def test_a_stream_is_notified_of_every_change(
    host: Host, add_runner_tool: Callable[[str], None]
) -> None:
    assert "deploy" not in tool_names(host)
    add_runner_tool("deploy")
    wait_for_change(host)
    assert "deploy" in tool_names(host)
    add_runner_tool("wipe")
    wait_for_change(host)
    assert {"deploy", "wipe"} <= tool_names(host)


def test_a_stream_announces_tool_list_notifications(host: Host) -> None:
    capabilities = host.request("initialize", INITIALIZE)["result"]["capabilities"]
    assert capabilities["tools"]["listChanged"] is True
    assert not capabilities["resources"].get("listChanged")


def test_a_subscribed_client_is_notified_over_http(
    web: str, principal: Principal, add_runner_tool: Callable[[str], None]
) -> None:
    headers = {
        **HEADERS,
        **bearer(create_token(name="host", trust="local")),
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "subscriptions/listen",
    }
    params = {**LISTEN, "_meta": MODERN_META}
    request = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    with (
        httpx.Client(base_url=web, headers=headers, timeout=TIMEOUT_S) as client,
        client.stream("POST", "/mcp", json=request) as answer,
    ):
        notifications = (json.loads(data) for data in data_of(answer.iter_lines()))
        first = next(notifications)
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"] == {"toolsListChanged": True}
        add_runner_tool("deploy")
        assert next(notifications)["method"] == CHANGED


def test_a_subscribed_client_is_notified_over_stdio(
    principal: Principal, add_runner_tool: Callable[[str], None]
) -> None:
    host = ModernHost(PrincipalTransport(principal))
    listening = host.start_request("subscriptions/listen", {**LISTEN, "_meta": MODERN_META})
    assert host.receive()["method"] == "notifications/subscriptions/acknowledged"
    add_runner_tool("deploy")
    wait_for_change(host)
    cancel = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": listening, "_meta": MODERN_META},
    }
    host.send(json.dumps(cancel).encode())
    host.close()


class ModernHost(StdioHost):
    """A host of a protocol revision without a handshake."""

    def initialize(self) -> None:
        """Do nothing: every request contains its own metadata."""


def test_the_built_in_tools_are_listed_if_the_targets_cannot_be_read(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_error(*_: Any) -> Any:
        raise DatabaseError("gone")

    monkeypatch.setattr("mcp_server.toolsets.targets.CALLER_TOOLS", raise_error)
    host = StdioHost(PrincipalTransport(principal))
    assert "run_task_template" in tool_names(host)
    host.close()


def test_the_number_of_subscriptions_is_limited(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_changes, "MAX_LISTENERS", 0)
    host = ModernHost(PrincipalTransport(principal))
    host.start_request("subscriptions/listen", {**LISTEN, "_meta": MODERN_META})
    answer = host.receive()
    host.close()
    assert "close one first" in answer["error"]["message"]
