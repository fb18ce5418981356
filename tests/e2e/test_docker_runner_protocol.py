"""Test the reference runner's HTTP protocol (S3 §3 to §5): what it accepts, refuses and answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runners.targets.published_tools import parse_published_tools
from tests.support.runners.docker_runner_process import (
    RunnerProcess,
    execute_body,
    link_sleep,
    processes_named,
    start_docker_runner,
)
from tests.support.runs.waiting import wait_until

JSON = "application/json"


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunnerProcess]:
    """Start one runner without isolation for all tests of this file."""
    with start_docker_runner(tmp_path_factory.mktemp("root"), "--isolation", "process") as runner:
        yield runner


def test_the_call_of_the_specification_returns_what_it_printed(runner: RunnerProcess) -> None:
    body = (
        b'{"call":{"name":"bash.exec","args":{"cmd":"printf ok"}},"ctx":{"runId":"r",'
        b'"sessionId":"s","runtimeMode":"local"},"target":{"targetId":"t","kind":"docker-runner",'
        b'"tenantId":"tenant"}}'
    )
    status, content = runner.post(body)
    assert status == 200
    assert [update["delta"] for update in content["updates"]] == ["ok"]
    assert content["result"]["ok"] is True
    assert content["result"]["output"]["stdout"] == "ok"


def test_updates_arrive_while_the_command_runs_and_the_result_arrives_last(
    runner: RunnerProcess,
) -> None:
    go_file = runner.root / "go"
    command = "echo first; until [ -e go ]; do sleep 0.05; done; echo second"
    body = json.dumps(execute_body("bash.exec", {"cmd": command})).encode()
    connection, response = runner.open("POST", "/execute", body, content_type=JSON)
    received = b""
    while b"first" not in received:
        received += response.read1(4096)
    assert b"result" not in received
    go_file.touch()
    content = json.loads(received + response.read())
    connection.close()
    assert list(content) == ["updates", "result"]
    assert "".join(update["delta"] for update in content["updates"]) == "first\nsecond\n"
    assert all(update["at"].endswith("Z") for update in content["updates"])


def body_without(path: str) -> bytes:
    """Return a request that lacks one field."""
    request_body = execute_body("echo", {"text": "x"})
    *parents, last = path.split(".")
    parent: Any = request_body
    for key in parents:
        parent = parent[key]
    del parent[last]
    return json.dumps(request_body).encode()


def body_with(path: str, value: Any) -> bytes:
    """Return a request with one field changed."""
    request_body = execute_body("echo", {"text": "x"})
    part, field = path.split(".")
    request_body[part][field] = value
    return json.dumps(request_body).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff",
        b"{}",
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
        b'{"call":1,"call":2}',
        body_without("call"),
        body_without("ctx"),
        body_without("target"),
        body_without("call.name"),
        body_without("call.args"),
        body_without("ctx.runId"),
        body_without("ctx.sessionId"),
        body_without("ctx.runtimeMode"),
        body_without("target.targetId"),
        body_without("target.kind"),
        body_without("target.tenantId"),
        body_with("call.args", []),
        body_with("call.args", None),
        body_with("call.name", ""),
        body_with("call.name", 7),
        body_with("target.kind", "browser"),
        body_with("call.args", {"text": "a\0b"}),
        body_with("call.args", {"text": "\ud800"}),
        body_with("call.args", {"text": float("nan")}),
        body_with("ctx.runId", "r" * 257),
    ],
)
def test_an_invalid_request_is_refused_with_a_json_error(
    runner: RunnerProcess, body: bytes
) -> None:
    status, content = runner.post(body)
    assert status == 400
    assert content["ok"] is False
    assert content["error"]["code"] == "INVALID_REQUEST"
    assert content["error"]["message"]


def test_unknown_fields_of_a_newer_gateway_are_accepted(runner: RunnerProcess) -> None:
    body = execute_body("echo", {"text": "x"}) | {"more": 1}
    body["ctx"]["traceparent"] = "00-1-2-3"
    assert runner.post(json.dumps(body).encode())[1]["result"]["output"] == {"text": "x"}


@pytest.mark.parametrize(
    ("status", "code", "headers"),
    [
        (403, "FORBIDDEN", {"origin": "https://evil.example"}),
        (403, "FORBIDDEN", {"origin": "null"}),
        (403, "FORBIDDEN", {"host": "evil.example"}),
        (403, "FORBIDDEN", {"host": "evil.example:18081"}),
        (403, "FORBIDDEN", {"host": "10.0.0.1"}),
        (403, "FORBIDDEN", {"host": "localhost.evil.example"}),
        (415, "INVALID_REQUEST", {"content_type": "text/plain"}),
        (415, "INVALID_REQUEST", {"content_type": "application/x-www-form-urlencoded"}),
        (415, "INVALID_REQUEST", {"content_type": "application/json; charset=latin-1"}),
        (415, "INVALID_REQUEST", {"content_encoding": "gzip"}),
    ],
)
def test_web_origins_foreign_host_names_and_other_content_types_are_refused(
    runner: RunnerProcess, status: int, code: str, headers: dict[str, str]
) -> None:
    response_status, content = runner.post(
        json.dumps(execute_body("echo", {"text": "x"})).encode(), **headers
    )
    assert (response_status, content["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:18081", "[::1]", "127.0.0.2"]
)
def test_loopback_host_names_are_accepted(runner: RunnerProcess, host: str) -> None:
    assert runner.request("GET", "/health", host=host)[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "NOT_FOUND"),
        ("POST", "/execute/", 404, "NOT_FOUND"),
        ("GET", "/execute", 405, "METHOD_NOT_ALLOWED"),
        ("POST", "/health", 405, "METHOD_NOT_ALLOWED"),
        ("POST", "/tools", 405, "METHOD_NOT_ALLOWED"),
    ],
)
def test_unknown_paths_and_methods_are_refused(
    runner: RunnerProcess, method: str, path: str, status: int, code: str
) -> None:
    response_status, content = runner.request(method, path)
    assert (response_status, content["error"]["code"]) == (status, code)


def test_a_body_that_is_too_large_is_refused_with_or_without_content_length(
    runner: RunnerProcess,
) -> None:
    large = b" " * (8 * 1024 * 1024 + 1)
    assert runner.post(large)[0] == 413
    chunks = iter([large[: 1024 * 1024]] * 9)
    status, content = runner.request("POST", "/execute", chunks, content_type=JSON)  # type: ignore[arg-type]
    assert (status, content["error"]["code"]) == (413, "INVALID_REQUEST")


def test_headers_that_are_too_large_are_refused_and_the_runner_keeps_serving(
    runner: RunnerProcess,
) -> None:
    connection, response = runner.open("GET", "/health", x_large="x" * 100_000)
    assert response.status == 431
    connection.close()
    assert runner.request("GET", "/health")[0] == 200


def test_health_reports_the_folder_the_isolation_and_the_usage(runner: RunnerProcess) -> None:
    status, content = runner.request("GET", "/health")
    assert status == 200
    assert content["ok"] is True
    assert content["service"] == "continuity-docker-runner"
    assert (content["workspaceRoot"], content["isolation"]) == (str(runner.root), "process")
    assert content["usage"]["runningCalls"] == 0
    assert content["usage"]["cpu"]["count"] >= 1
    assert (
        content["usage"]["memory"]["totalBytes"] > content["usage"]["memory"]["availableBytes"] > 0
    )
    assert content["time"].endswith("Z")
    assert runner.request("HEAD", "/health") == (200, None)


def test_the_tools_are_listed_with_their_schemas(runner: RunnerProcess) -> None:
    status, content = runner.request("GET", "/tools")
    tools = {tool["name"]: tool for tool in content["tools"]}
    assert (status, len(tools)) == (200, 8)
    assert tools["bash.exec"]["inputSchema"]["required"] == ["cmd"]
    assert (tools["bash.exec"]["effect"], tools["bash.exec"]["risk"]) == ("external", "high")
    assert (tools["echo"]["effect"], tools["echo"]["risk"]) == ("read", "low")
    published = parse_published_tools(json.dumps(content).encode())
    assert [offer["name"] for offer in published] == sorted(tools)
    assert all(offer["description"] and offer["inputSchema"]["properties"] for offer in published)


def test_listing_the_tools_requires_the_token(tmp_path: Path) -> None:
    token = "a-token-of-some-length"
    with start_docker_runner(
        tmp_path, "--isolation", "process", CONTINUITY_RUNNER_TOKEN=token
    ) as runner:
        assert runner.request("GET", "/tools")[0] == 401
        assert runner.request("GET", "/tools", authorization=f"Bearer {token}")[0] == 200


def test_health_omits_the_folder_for_a_request_through_a_proxy(runner: RunnerProcess) -> None:
    assert runner.request("GET", "/health", x_forwarded_for="192.0.2.1")[1]["workspaceRoot"] is None


def test_a_closed_connection_ends_the_command(runner: RunnerProcess) -> None:
    sleep_program = link_sleep(runner.root)
    command = f"(setsid env -i ./{sleep_program} 600 &); ./{sleep_program} 600"
    body = json.dumps(execute_body("bash.exec", {"cmd": command})).encode()
    connection = runner.send("POST", "/execute", body, content_type=JSON)
    wait_until(lambda: len(processes_named(sleep_program)) == 2)
    assert runner.request("GET", "/health")[1]["usage"]["runningCalls"] == 1
    connection.close()
    wait_until(lambda: not processes_named(sleep_program))
    wait_until(lambda: runner.request("GET", "/health")[1]["usage"]["runningCalls"] == 0)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("bash.exec", {}),
        ("bash.exec", {"cmd": ""}),
        ("bash.exec", {"cmd": 1}),
        ("bash.exec", {"cmd": "true", "timeoutMs": 0}),
        ("bash.exec", {"cmd": "true", "timeoutMs": True}),
        ("bash.exec", {"cmd": "true", "timeoutMs": "9"}),
        ("bash.exec", {"cmd": "true", "env": {"A=B": "1"}}),
        ("bash.exec", {"cmd": "true", "env": {"A": 1}}),
        ("bash.exec", {"cmd": "true", "shell": "zsh"}),
        ("bash.exec", {"cmd": "x" * 100_000}),
        ("file.read", {"path": "a", "mode": "r"}),
        ("file.list", {"limit": 0}),
        ("file.write", {"path": "a"}),
        ("math.add", {"a": 1}),
        ("math.add", {"a": True, "b": 1}),
        ("math.add", {"a": "1", "b": 1}),
        ("math.add", {"a": 1e308, "b": 1e308}),
        ("text.upper", {"text": None}),
        ("echo", {"text": "x", "more": 1}),
        ("http.request", {"url": "http://example.com", "method": "TRACE"}),
        ("http.request", {"url": "http://example.com", "headers": {"Host": "x"}}),
        ("http.request", {"url": "http://example.com", "headers": {"a": "b\r\nc: d"}}),
    ],
)
def test_wrong_arguments_are_reported_and_nothing_runs(
    runner: RunnerProcess, name: str, args: dict[str, Any]
) -> None:
    error = runner.error(name, **args)
    assert error["code"] == "INVALID_ARGUMENTS"
    assert name in error["message"] or "sum" in error["message"]


def test_an_unknown_tool_is_refused_with_the_list_of_known_tools(runner: RunnerProcess) -> None:
    error = runner.error("bash.exec2")
    assert error["code"] == "TOOL_NOT_FOUND"
    assert set(error["details"]["tools"]) == {
        "bash.exec",
        "echo",
        "file.list",
        "file.read",
        "file.write",
        "http.request",
        "math.add",
        "text.upper",
    }


def test_the_simple_tools_return_their_results(runner: RunnerProcess) -> None:
    assert runner.output("math.add", a=1, b=2) == {"result": 3}
    assert runner.output("math.add", a=0.5, b=-2) == {"result": -1.5}
    assert runner.output("text.upper", text="straße") == {"text": "STRASSE"}
    assert runner.output("echo", text="中文") == {"text": "中文"}


def test_an_http_request_is_refused_without_network_access(runner: RunnerProcess) -> None:
    assert runner.error("http.request", url="http://example.com")["code"] == "NETWORK_NOT_ALLOWED"


def test_the_runner_starts_without_a_database_and_creates_no_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (root := tmp_path / "root").mkdir()
    unusable = {
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "CONTINUITY_HOME": str(home),
    }
    with start_docker_runner(root, "--isolation", "process", **unusable) as runner:
        assert runner.output("echo", text="x") == {"text": "x"}
    assert not home.exists()
