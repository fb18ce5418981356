"""Test that waits end when an MCP caller over HTTP disconnects, cancels or never ends a call."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable

import httpx
import pytest

from runs.models import Run
from runs.streaming import hub
from tests.contract.mcp_host import structured
from tests.contract.mcp_web_host import HEADERS, MODERN, MODERN_META, SseHost, WebHost
from tests.support.rest import bearer
from tests.support.waiting import wait_until

pytest_plugins = ["tests.support.rest_fixtures"]


def waiting() -> int:
    """Count the requests that wait for a run in this process's web server."""
    hubs = list(hub._hubs.values())
    return sum(
        len(log.subscribers) + len(log.watchers) for each in hubs for log in each._logs.values()
    )


def leave(web: str, token: str, body: bytes, revision: str) -> None:
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
        wait_until(lambda: waiting() == 1)


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_a_disconnect_ends_the_wait_of_the_call(
    web: str, token: str, make_run: Callable[..., Run], revision: str
) -> None:
    arguments = {"runId": make_run(status="running").id, "waitMs": 55_000}
    params = {"name": "wait_task_run", "arguments": arguments}
    params |= {"_meta": MODERN_META} if revision == MODERN else {}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    leave(web, token, json.dumps(call).encode(), revision)
    wait_until(lambda: waiting() == 0)


@pytest.mark.parametrize("kind", [WebHost, SseHost])
def test_canceling_a_call_ends_its_wait_and_no_other(
    web: str, token: str, make_run: Callable[..., Run], kind: type[WebHost]
) -> None:
    asked = {"runId": make_run(status="running").id, "waitMs": 3000}
    host, other = kind(web, token), kind(web, token)
    taken_back, kept = (
        host.begin_call("wait_task_run", asked),
        other.begin_call("wait_task_run", asked),
    )
    assert taken_back == kept
    wait_until(lambda: waiting() == 2)
    cancel = {"method": "notifications/cancelled", "params": {"requestId": taken_back}}
    host.send(json.dumps({"jsonrpc": "2.0", **cancel}).encode())
    wait_until(lambda: waiting() == 1)
    assert structured(other.answer_to(kept))["status"] == "running"
    host.close()
    other.close()


def test_closing_a_stream_ends_all_its_waits(
    web: str, token: str, make_run: Callable[..., Run]
) -> None:
    asked = {"runId": make_run(status="running").id, "waitMs": 55_000}
    host = SseHost(web, token)
    for _ in range(3):
        host.begin_call("wait_task_run", asked)
    wait_until(lambda: waiting() == 3)
    host.close()
    wait_until(lambda: waiting() == 0)


def test_many_calls_of_one_client_are_answered_concurrently(
    web: str, token: str, make_run: Callable[..., Run]
) -> None:
    asked = {"runId": make_run(status="running").id, "waitMs": 6000}
    host = WebHost(web, token)
    waits = [host.begin_call("wait_task_run", asked) for _ in range(20)]
    wait_until(lambda: waiting() == 20)  # more than the number of database threads
    assert structured(host.call("get_runtime_profile", {}))["maxUrls"] == 1000
    assert {structured(host.answer_to(each))["status"] for each in waits} == {"running"}
    host.close()


def test_reading_an_unfinished_body_ends_when_the_caller_disconnects(web: str, token: str) -> None:
    host, port = web.removeprefix("http://").split(":")
    head = "".join(f"{n}: {v}\r\n" for n, v in {**HEADERS, **bearer(token)}.items())
    with socket.create_connection((host, int(port))) as caller:
        caller.sendall(
            f"POST /mcp HTTP/1.1\r\nHost: {host}\r\n{head}Content-Length: 99\r\n\r\n{{".encode()
        )
    assert httpx.get(f"{web}/healthz").status_code == 200
