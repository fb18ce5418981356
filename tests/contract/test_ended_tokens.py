"""A token that expired or was revoked is refused on every surface, and what it opened ends, also
when the users change that it may act for.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from decisions.identity.principals import Principal, create_token
from decisions.models import Token
from mcp_server.http import access
from mcp_server.tools import list_changes
from runners.targets.targets import TargetFields, allow_on_target, create_target_row
from runs.streaming import credential_checks, sse
from tests.contract.mcp_http_host import HEADERS, MODERN, MODERN_META, data_of
from tests.support.rest.rest import bearer
from tests.support.runs.task_socket import is_event, open_task_socket

READ_TIMEOUT_S = 10.0  # shorter than the keep-alive interval of an MCP stream
HOUR = timedelta(hours=1)
CHANGED = "notifications/tools/list_changed"
PING = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'


def expire() -> None:
    Token.objects.update(expires_at=datetime.now(UTC) - timedelta(seconds=1))


def revoke() -> None:
    Token.objects.update(revoked_at=datetime.now(UTC))


def limit() -> None:
    Token.objects.update(acts_for=["carol"])


ENDS = pytest.mark.parametrize("end", [expire, revoke, limit])


@pytest.fixture(autouse=True)
def check_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check open connections at a short interval."""
    for module, name in (
        (access, "CHECK_S"),
        (list_changes, "POLL_S"),
        (sse, "KEEP_ALIVE_S"),
        (credential_checks, "CHECK_S"),
    ):
        monkeypatch.setattr(module, name, 0.05)


def test_a_token_works_until_it_expires_and_then_says_so(
    web: str, principal: Principal, anonymous: httpx.Client
) -> None:
    token = create_token(name="short", lifetime=HOUR, trust="local")
    assert anonymous.get("/api/v1/runs", headers=bearer(token)).status_code == 200
    expire()
    for response in (
        anonymous.get("/api/v1/runs", headers=bearer(token)),
        anonymous.post("/mcp", content=PING, headers={**HEADERS, **bearer(token)}),
        anonymous.get("/sse", headers={**HEADERS, **bearer(token)}),
    ):
        assert response.status_code == 401
        assert response.headers["WWW-Authenticate"].startswith("Bearer")
        assert response.json()["errorCode"] == "UNAUTHENTICATED"
        assert response.json()["message"] == "The bearer token has expired."
        assert "create_token" in response.json()["recovery"]


def test_the_first_frame_of_a_socket_names_the_expiry(
    web: str, token: str, make_task: Callable[..., str]
) -> None:
    task_id = make_task()
    expire()
    with open_task_socket(web, task_id) as task_socket:
        answer = task_socket.request({"type": "auth", "token": token})
        assert answer["error"]["message"] == "The bearer token has expired."
        assert task_socket.close_code() == 4401


@ENDS
def test_an_open_socket_ends(
    web: str, token: str, make_task: Callable[..., str], end: Callable[[], None]
) -> None:
    with open_task_socket(web, make_task(), token=token) as task_socket:
        assert is_event("snapshotSync")(task_socket.receive())
        end()
        assert task_socket.close_code() == 4401


@ENDS
def test_an_idle_event_stream_ends(
    api: httpx.Client, make_task: Callable[..., str], end: Callable[[], None]
) -> None:
    address = f"/api/v1/tasks/{make_task()}/events"
    with api.stream("GET", address, headers={"Accept": "text/event-stream"}) as response:
        lines = response.iter_lines()
        assert next(lines).startswith("retry")
        end()
        list(lines)  # returns when the stream ends


@ENDS
def test_an_open_mcp_stream_ends(web: str, token: str, end: Callable[[], None]) -> None:
    with httpx.stream(
        "GET", f"{web}/sse", headers={**HEADERS, **bearer(token)}, timeout=READ_TIMEOUT_S
    ) as response:
        lines = response.iter_lines()
        assert next(lines) == "event: endpoint"
        end()
        list(lines)  # returns when the stream ends


@contextlib.contextmanager
def subscribe(web: str, token: str) -> Iterator[Iterator[dict[str, Any]]]:
    """Subscribe to changes of the tool list; yield the messages of the stream."""
    headers = {
        **HEADERS,
        **bearer(token),
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "subscriptions/listen",
    }
    params = {"notifications": {"toolsListChanged": True}, "_meta": MODERN_META}
    request = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    with (
        httpx.Client(base_url=web, headers=headers, timeout=READ_TIMEOUT_S) as client,
        client.stream("POST", "/mcp", json=request) as answer,
    ):
        messages = (json.loads(data) for data in data_of(answer.iter_lines()))
        assert next(messages)["method"] == "notifications/subscriptions/acknowledged"
        yield messages


@ENDS
def test_a_subscription_ends(web: str, token: str, end: Callable[[], None]) -> None:
    with subscribe(web, token) as messages:
        end()
        assert [message for message in messages if message.get("method") == CHANGED] == []


def test_a_subscription_sends_no_change_after_the_token_was_revoked(
    web: str, principal: Principal, token: str, monkeypatch: pytest.MonkeyPatch, open_loopback: None
) -> None:
    monkeypatch.setattr(access, "CHECK_S", 3.0)  # the list is compared more often
    workspace = principal.tenant_id, principal.workspace_id
    fields = TargetFields(*workspace, "r", "docker-runner", endpoint="http://127.0.0.1:1/")
    with subscribe(web, token) as messages:
        revoke()
        allow_on_target(
            create_target_row(fields, actor="test"), ["deploy"], actor="test", reason="test"
        )
        assert [message for message in messages if message.get("method") == CHANGED] == []
