"""Test the reference runner's HTTP protocol (S3 §3 to §5): what it accepts, refuses and answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runners.targets.published_tools import parse_published_tools
from tests.support.docker_runner_process import (
    RunnerProcess,
    execute_body,
    link_sleep,
    processes_named,
    start_docker_runner,
)
from tests.support.waiting import wait_until

JSON = "application/json"


@pytest.fixture(scope="module")
def hands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunnerProcess]:
    """Start one runner without isolation for all tests of this file."""
    with start_docker_runner(tmp_path_factory.mktemp("root"), "--isolation", "process") as hands:
        yield hands


def test_the_call_of_the_specification_returns_what_it_printed(hands: RunnerProcess) -> None:
    body = (
        b'{"call":{"name":"bash.exec","args":{"cmd":"printf ok"}},"ctx":{"runId":"r",'
        b'"sessionId":"s","runtimeMode":"local"},"target":{"targetId":"t","kind":"docker-runner",'
        b'"tenantId":"tenant"}}'
    )
    status, told = hands.post(body)
    assert status == 200
    assert [update["delta"] for update in told["updates"]] == ["ok"]
    assert told["result"]["ok"] is True
    assert told["result"]["output"]["stdout"] == "ok"


def test_updates_arrive_while_the_command_runs_and_the_result_arrives_last(
    hands: RunnerProcess,
) -> None:
    go = hands.root / "go"
    line = "echo first; until [ -e go ]; do sleep 0.05; done; echo second"
    body = json.dumps(execute_body("bash.exec", {"cmd": line})).encode()
    connection, answer = hands.open("POST", "/execute", body, content_type=JSON)
    begun = b""
    while b"first" not in begun:
        begun += answer.read1(4096)
    assert b"result" not in begun
    go.touch()
    told = json.loads(begun + answer.read())
    connection.close()
    assert list(told) == ["updates", "result"]
    assert "".join(update["delta"] for update in told["updates"]) == "first\nsecond\n"
    assert all(update["at"].endswith("Z") for update in told["updates"])


def without(path: str) -> bytes:
    """Return a request that lacks one field."""
    made = execute_body("echo", {"text": "x"})
    *way, last = path.split(".")
    inner: Any = made
    for key in way:
        inner = inner[key]
    del inner[last]
    return json.dumps(made).encode()


def with_(path: str, value: Any) -> bytes:
    """Return a request with one field changed."""
    made = execute_body("echo", {"text": "x"})
    part, field = path.split(".")
    made[part][field] = value
    return json.dumps(made).encode()


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
        without("call"),
        without("ctx"),
        without("target"),
        without("call.name"),
        without("call.args"),
        without("ctx.runId"),
        without("ctx.sessionId"),
        without("ctx.runtimeMode"),
        without("target.targetId"),
        without("target.kind"),
        without("target.tenantId"),
        with_("call.args", []),
        with_("call.args", None),
        with_("call.name", ""),
        with_("call.name", 7),
        with_("target.kind", "browser"),
        with_("call.args", {"text": "a\0b"}),
        with_("call.args", {"text": "\ud800"}),
        with_("call.args", {"text": float("nan")}),
        with_("ctx.runId", "r" * 257),
    ],
)
def test_an_invalid_request_is_refused_with_a_json_error(hands: RunnerProcess, body: bytes) -> None:
    status, told = hands.post(body)
    assert status == 400
    assert told["ok"] is False
    assert told["error"]["code"] == "INVALID_REQUEST"
    assert told["error"]["message"]


def test_unknown_fields_of_a_newer_gateway_are_accepted(hands: RunnerProcess) -> None:
    body = execute_body("echo", {"text": "x"}) | {"more": 1}
    body["ctx"]["traceparent"] = "00-1-2-3"
    assert hands.post(json.dumps(body).encode())[1]["result"]["output"] == {"text": "x"}


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
    hands: RunnerProcess, status: int, code: str, headers: dict[str, str]
) -> None:
    got, told = hands.post(json.dumps(execute_body("echo", {"text": "x"})).encode(), **headers)
    assert (got, told["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:18081", "[::1]", "127.0.0.2"]
)
def test_loopback_host_names_are_accepted(hands: RunnerProcess, host: str) -> None:
    assert hands.request("GET", "/health", host=host)[0] == 200


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
    hands: RunnerProcess, method: str, path: str, status: int, code: str
) -> None:
    got, told = hands.request(method, path)
    assert (got, told["error"]["code"]) == (status, code)


def test_a_body_that_is_too_large_is_refused_with_or_without_content_length(
    hands: RunnerProcess,
) -> None:
    large = b" " * (8 * 1024 * 1024 + 1)
    assert hands.post(large)[0] == 413
    chunks = iter([large[: 1024 * 1024]] * 9)
    status, told = hands.request("POST", "/execute", chunks, content_type=JSON)  # type: ignore[arg-type]
    assert (status, told["error"]["code"]) == (413, "INVALID_REQUEST")


def test_headers_that_are_too_large_are_refused_and_the_runner_keeps_serving(
    hands: RunnerProcess,
) -> None:
    connection, answer = hands.open("GET", "/health", x_large="x" * 100_000)
    assert answer.status == 431
    connection.close()
    assert hands.request("GET", "/health")[0] == 200


def test_health_reports_the_folder_the_isolation_and_the_usage(hands: RunnerProcess) -> None:
    status, told = hands.request("GET", "/health")
    assert status == 200
    assert told["ok"] is True
    assert told["service"] == "continuity-docker-runner"
    assert (told["workspaceRoot"], told["isolation"]) == (str(hands.root), "process")
    assert told["usage"]["runningCalls"] == 0
    assert told["usage"]["cpu"]["count"] >= 1
    assert told["usage"]["memory"]["totalBytes"] > told["usage"]["memory"]["availableBytes"] > 0
    assert told["time"].endswith("Z")
    assert hands.request("HEAD", "/health") == (200, None)


def test_the_tools_are_listed_with_their_schemas(hands: RunnerProcess) -> None:
    status, told = hands.request("GET", "/tools")
    tools = {tool["name"]: tool for tool in told["tools"]}
    assert (status, len(tools)) == (200, 8)
    assert tools["bash.exec"]["inputSchema"]["required"] == ["cmd"]
    assert (tools["bash.exec"]["effect"], tools["bash.exec"]["risk"]) == ("external", "high")
    assert (tools["echo"]["effect"], tools["echo"]["risk"]) == ("read", "low")
    kept = parse_published_tools(json.dumps(told).encode())
    assert [offer["name"] for offer in kept] == sorted(tools)
    assert all(offer["description"] and offer["inputSchema"]["properties"] for offer in kept)


def test_listing_the_tools_requires_the_token(tmp_path: Path) -> None:
    token = "a-token-of-some-length"
    with start_docker_runner(
        tmp_path, "--isolation", "process", CONTINUITY_RUNNER_TOKEN=token
    ) as hands:
        assert hands.request("GET", "/tools")[0] == 401
        assert hands.request("GET", "/tools", authorization=f"Bearer {token}")[0] == 200


def test_health_omits_the_folder_for_a_request_through_a_proxy(hands: RunnerProcess) -> None:
    assert hands.request("GET", "/health", x_forwarded_for="192.0.2.1")[1]["workspaceRoot"] is None


def test_a_closed_connection_ends_the_command(hands: RunnerProcess) -> None:
    nap = link_sleep(hands.root)
    line = f"(setsid env -i ./{nap} 600 &); ./{nap} 600"
    body = json.dumps(execute_body("bash.exec", {"cmd": line})).encode()
    connection = hands.send("POST", "/execute", body, content_type=JSON)
    wait_until(lambda: len(processes_named(nap)) == 2)
    assert hands.request("GET", "/health")[1]["usage"]["runningCalls"] == 1
    connection.close()
    wait_until(lambda: not processes_named(nap))
    wait_until(lambda: hands.request("GET", "/health")[1]["usage"]["runningCalls"] == 0)


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
    hands: RunnerProcess, name: str, args: dict[str, Any]
) -> None:
    error = hands.error(name, **args)
    assert error["code"] == "INVALID_ARGUMENTS"
    assert name in error["message"] or "sum" in error["message"]


def test_an_unknown_tool_is_refused_with_the_list_of_known_tools(hands: RunnerProcess) -> None:
    error = hands.error("bash.exec2")
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


def test_the_simple_tools_return_their_results(hands: RunnerProcess) -> None:
    assert hands.output("math.add", a=1, b=2) == {"result": 3}
    assert hands.output("math.add", a=0.5, b=-2) == {"result": -1.5}
    assert hands.output("text.upper", text="straße") == {"text": "STRASSE"}
    assert hands.output("echo", text="中文") == {"text": "中文"}


def test_an_http_request_is_refused_without_network_access(hands: RunnerProcess) -> None:
    assert hands.error("http.request", url="http://example.com")["code"] == "NETWORK_NOT_ALLOWED"


def test_the_runner_starts_without_a_database_and_creates_no_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (root := tmp_path / "root").mkdir()
    unusable = {
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "CONTINUITY_HOME": str(home),
    }
    with start_docker_runner(root, "--isolation", "process", **unusable) as hands:
        assert hands.output("echo", text="x") == {"text": "x"}
    assert not home.exists()
