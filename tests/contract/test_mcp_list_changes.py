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
from tests.contract.mcp_host import INITIALIZE, PATIENCE_S, Host, PrincipalTransport, StdioHost
from tests.contract.mcp_web_host import HEADERS, MODERN, MODERN_META, data_of
from tests.support.rest import bearer

pytest_plugins = ["tests.support.rest_fixtures", "tests.support.runner_fixtures"]
pytestmark = pytest.mark.usefixtures("open_loopback")

TRANSPORTS = ("stdio", "sse")  # at /mcp such a client has no stream and polls
CHANGED = "notifications/tools/list_changed"
LISTEN = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}


@pytest.fixture(autouse=True)
def poll_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll the lists at a short interval."""
    monkeypatch.setattr(list_changes, "POLL_S", 0.05)


@pytest.fixture
def offer(principal: Principal) -> Callable[[str], None]:
    """Return a function that adds a runner with a tool."""

    def make(tool: str) -> None:
        place = principal.tenant_id, principal.workspace_id
        says = TargetFields(*place, tool, "docker-runner", endpoint="http://127.0.0.1:1/")
        allow_on_target(create_target_row(says, actor="test"), [tool], actor="test")

    return make


def names(host: Host) -> set[str]:
    return {tool["name"] for tool in host.request("tools/list", {})["result"]["tools"]}


def until_changed(host: Host) -> None:
    while host.receive().get("method") != CHANGED:
        pass


def test_a_stream_is_notified_of_every_change(host: Host, offer: Callable[[str], None]) -> None:
    assert "deploy" not in names(host)
    offer("deploy")
    until_changed(host)
    assert "deploy" in names(host)
    offer("wipe")
    until_changed(host)
    assert {"deploy", "wipe"} <= names(host)


def test_a_stream_announces_tool_list_notifications(host: Host) -> None:
    told = host.request("initialize", INITIALIZE)["result"]["capabilities"]
    assert told["tools"]["listChanged"] is True
    assert not told["resources"].get("listChanged")


def test_a_subscribed_client_is_notified_over_http(
    web: str, principal: Principal, offer: Callable[[str], None]
) -> None:
    headers = {
        **HEADERS,
        **bearer(create_token(name="host", trust="local")),
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "subscriptions/listen",
    }
    params = {**LISTEN, "_meta": MODERN_META}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    with (
        httpx.Client(base_url=web, headers=headers, timeout=PATIENCE_S) as client,
        client.stream("POST", "/mcp", json=asked) as answer,
    ):
        told = (json.loads(data) for data in data_of(answer.iter_lines()))
        first = next(told)
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"] == {"toolsListChanged": True}
        offer("deploy")
        assert next(told)["method"] == CHANGED


def test_a_subscribed_client_is_notified_over_stdio(
    principal: Principal, offer: Callable[[str], None]
) -> None:
    host = ModernHost(PrincipalTransport(principal))
    listening = host.begin("subscriptions/listen", {**LISTEN, "_meta": MODERN_META})
    assert host.receive()["method"] == "notifications/subscriptions/acknowledged"
    offer("deploy")
    until_changed(host)
    cancel = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": listening, "_meta": MODERN_META},
    }
    host.send(json.dumps(cancel).encode())
    host.close()


class ModernHost(StdioHost):
    """A host of a protocol revision without a handshake."""

    def shake_hands(self) -> None:
        """Do nothing: every request contains its own metadata."""


def test_the_built_in_tools_are_listed_if_the_targets_cannot_be_read(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise DatabaseError("gone")

    monkeypatch.setattr("mcp_server.toolsets.targets.CALLER_TOOLS", fails)
    host = StdioHost(PrincipalTransport(principal))
    assert "run_task_template" in names(host)
    host.close()
