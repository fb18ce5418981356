"""Test that waits end when an MCP caller over HTTP disconnects, cancels or never ends a call."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from decisions.identity.principals import Principal, create_token
from runs.models import Run
from runs.streaming import hub
from runs.submission.cancel import cancel_run
from tests.contract.mcp_host import structured
from tests.contract.mcp_http_host import HEADERS, MODERN, MODERN_META, SseHost, WebHost
from tests.support.rest.rest import bearer
from tests.support.runs.waiting import wait_until


def count_waiting() -> int:
    """Count the requests that wait for a run in this process's web server."""
    hubs = list(hub._hubs.values())
    return sum(
        len(log.subscribers) + len(log.watchers) for each in hubs for log in each._logs.values()
    )


def call_and_disconnect(web: str, token: str, body: bytes, revision: str) -> None:
    """Send a call, wait until the server waits for the run, and disconnect."""
    host, port = web.removeprefix("http://").split(":")
    headers = {
        **HEADERS,
        **bearer(token),
        "Host": f"{host}:{port}",
        "Content-Length": str(len(body)),
    }
    if revision == MODERN:
        headers |= {
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": "wait_task_run",
        }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection((host, int(port))) as caller:
        caller.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
        wait_until(lambda: count_waiting() == 1)


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_a_disconnect_ends_the_wait_of_the_call(
    web: str, token: str, make_run: Callable[..., Run], revision: str
) -> None:
    arguments = {"runId": make_run(status="running").id, "waitMs": 55_000}
    params = {"name": "wait_task_run", "arguments": arguments}
    params |= {"_meta": MODERN_META} if revision == MODERN else {}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    call_and_disconnect(web, token, json.dumps(call).encode(), revision)
    wait_until(lambda: count_waiting() == 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [WebHost, SseHost])
def test_canceling_a_call_ends_its_wait_and_no_other(
    web: str,
    token: str,
    make_run: Callable[..., Run],
    principal: Principal,
    kind: type[WebHost],
) -> None:
    run_id = make_run(status="running").id
    arguments = {"runId": run_id, "waitMs": 55_000}
    host, other = kind(web, token), kind(web, token)
    canceled_id, other_id = (
        host.start_call("wait_task_run", arguments),
        other.start_call("wait_task_run", arguments),
    )
    assert canceled_id == other_id
    wait_until(lambda: count_waiting() == 2)
    cancel = {"method": "notifications/cancelled", "params": {"requestId": canceled_id}}
    host.send(json.dumps({"jsonrpc": "2.0", **cancel}).encode())
    wait_until(lambda: count_waiting() == 1)
    cancel_run(principal=principal, run_id=run_id)
    assert structured(other.answer_to(other_id))["status"] == "canceled"
    host.close()
    other.close()


def test_closing_a_stream_ends_all_its_waits(
    web: str, token: str, make_run: Callable[..., Run]
) -> None:
    arguments = {"runId": make_run(status="running").id, "waitMs": 55_000}
    host = SseHost(web, token)
    for _ in range(3):
        host.start_call("wait_task_run", arguments)
    wait_until(lambda: count_waiting() == 3)
    host.close()
    wait_until(lambda: count_waiting() == 0)


@pytest.mark.slow
def test_many_calls_of_one_client_are_answered_concurrently(
    web: str, token: str, make_run: Callable[..., Run], principal: Principal
) -> None:
    run_id = make_run(status="running").id
    arguments = {"runId": run_id, "waitMs": 55_000}
    host = WebHost(web, token)
    request_ids = [host.start_call("wait_task_run", arguments) for _ in range(20)]
    wait_until(lambda: count_waiting() == 20)  # more than the number of database threads
    assert structured(host.call("get_runtime_profile", {}))["maxUrls"] == 1000
    assert count_waiting() == 20
    cancel_run(principal=principal, run_id=run_id)
    statuses = {structured(host.answer_to(request_id))["status"] for request_id in request_ids}
    assert statuses == {"canceled"}
    host.close()


def test_reading_an_unfinished_body_ends_when_the_caller_disconnects(web: str, token: str) -> None:
    host, port = web.removeprefix("http://").split(":")
    head = "".join(f"{n}: {v}\r\n" for n, v in {**HEADERS, **bearer(token)}.items())
    with socket.create_connection((host, int(port))) as caller:
        caller.sendall(
            f"POST /mcp HTTP/1.1\r\nHost: {host}\r\n{head}Content-Length: 99\r\n\r\n{{".encode()
        )
    assert httpx.get(f"{web}/healthz").status_code == 200


def test_only_the_token_and_the_session_of_a_call_can_cancel_it(
    web: str, token: str, make_run: Callable[..., Run], principal: Principal
) -> None:
    first, second = (make_run(status="running").id for _ in range(2))

    def wait_call(run_id: str) -> dict[str, Any]:
        params = {"name": "wait_task_run", "arguments": {"runId": run_id, "waitMs": 55_000}}
        return {"jsonrpc": "2.0", "id": "w", "method": "tools/call", "params": params}

    cancel = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": "w"},
    }
    host, same_token = WebHost(web, token), WebHost(web, token)
    same_session = WebHost(web, create_token(name="other", trust="local"))
    same_session.client.headers["mcp-session-id"] = host.client.headers["mcp-session-id"]
    with ThreadPoolExecutor(1) as pool:
        response = pool.submit(host.client.post, "/mcp", json=wait_call(first))
        wait_until(lambda: count_waiting() == 1)
        for other in (same_token, same_session):
            assert other.client.post("/mcp", json=cancel).status_code == 202
        cancel_run(principal=principal, run_id=first)
        assert first in response.result().text
        wait_until(lambda: count_waiting() == 0)
        response = pool.submit(host.client.post, "/mcp", json=wait_call(second))
        wait_until(lambda: count_waiting() == 1)
        assert host.client.post("/mcp", json=cancel).status_code == 202
        assert second not in response.result().text
    for client in (host, same_token, same_session):
        client.close()
