"""How the reference runner writes an answer, including when a tool fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runners.docker_runner import catalogue
from runners.docker_runner.access import AccessControl
from runners.docker_runner.app import RunnerApp
from runners.docker_runner.isolation.base import RunnerFolder
from runners.docker_runner.isolation.process import ProcessIsolation
from runners.docker_runner.response_stream import UPDATE_CHARS
from runners.docker_runner.tool import Arguments, ToolEnvironment, runner_tool
from runners.tools.base import Effect
from tests.support.runners.docker_runner_process import execute_body

SENT: list[Mapping[str, Any]] = []  # the ASGI messages of the current answer


class NoArguments(Arguments):
    """An input without arguments."""


@runner_tool("fails", Effect.READ)
async def failing_tool(args: NoArguments, env: ToolEnvironment) -> Mapping[str, Any]:
    """Raise an exception that no tool should raise."""
    raise LookupError("a secret detail")


@runner_tool("fails.late", Effect.READ)
async def late_failing_tool(args: NoArguments, env: ToolEnvironment) -> Mapping[str, Any]:
    """Send a first update, then wait until it was delivered and fail."""
    env.emit("first update")
    async with asyncio.timeout(60):
        while not any(b"first update" in message.get("body", b"") for message in SENT):
            await asyncio.sleep(0.01)
    raise LookupError("a secret detail")


@runner_tool("silent", Effect.READ)
async def silent_tool(args: NoArguments, env: ToolEnvironment) -> Mapping[str, Any]:
    """Send no update until the keep-alive was sent."""
    while not SENT:
        await asyncio.sleep(0.01)
    return {}


@runner_tool("verbose", Effect.READ)
async def verbose_tool(args: NoArguments, env: ToolEnvironment) -> Mapping[str, Any]:
    """Send a lot of text at once."""
    for _ in range(10_000):
        env.emit("0123456789")
    return {}


@pytest.fixture(autouse=True)
def register_bad_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register tools that no runner should have."""
    for tool in (failing_tool, late_failing_tool, silent_tool, verbose_tool):
        monkeypatch.setitem(catalogue.TOOLS, tool.name, tool)


def call_runner_app(name: str, root: Path) -> tuple[int, dict[str, Any]]:
    """Call a tool of an in-process application; return status and JSON."""
    status, raw = call_runner_app_raw(name, root)
    return status, json.loads(raw)


def call_runner_app_raw(name: str, root: Path) -> tuple[int, bytes]:
    """Call a tool of an in-process application; return status and bytes."""
    app = RunnerApp(
        RunnerFolder(root),
        ProcessIsolation(RunnerFolder(root)),
        "process",
        AccessControl(None, is_open=False),
    )
    body = json.dumps(execute_body(name, {})).encode()
    incoming = [{"type": "http.request", "body": body, "more_body": False}]
    SENT.clear()

    async def receive() -> Mapping[str, Any]:
        if not incoming:
            await asyncio.Event().wait()
        return incoming.pop()

    async def send(message: Mapping[str, Any]) -> None:
        SENT.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/execute", "headers": headers}
    asyncio.run(app(scope, receive, send))
    return SENT[0]["status"], b"".join(message.get("body", b"") for message in SENT)


def test_a_tool_that_raises_is_an_internal_error_without_its_details(tmp_path: Path) -> None:
    status, body = call_runner_app("fails", tmp_path)
    assert (status, body["ok"], body["error"]["code"]) == (500, False, "INTERNAL_ERROR")
    assert "secret" not in json.dumps(body)


def test_a_tool_that_fails_after_an_update_completes_the_answer_that_was_started(
    tmp_path: Path,
) -> None:
    status, body = call_runner_app("fails.late", tmp_path)
    assert status == 200
    assert body["updates"][0]["delta"] == "first update"
    assert body["result"]["error"]["code"] == "INTERNAL_ERROR"


def test_calls_over_the_limit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runners.docker_runner.app.MAX_CALLS", 0)
    status, body = call_runner_app("verbose", tmp_path)
    assert (status, body["error"]["code"]) == (503, "BUSY")


def test_blanks_keep_the_answer_alive_while_a_tool_sends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runners.docker_runner.response_stream.QUIET_S", 0.05)
    _, raw = call_runner_app_raw("silent", tmp_path)
    assert raw.startswith(b'{"updates":[\n')
    assert json.loads(raw) == {"updates": [], "result": {"ok": True, "output": {}}}


def test_much_text_is_sent_in_few_updates_of_moderate_size(tmp_path: Path) -> None:
    _, body = call_runner_app("verbose", tmp_path)
    deltas = [update["delta"] for update in body["updates"]]
    assert "".join(deltas) == "0123456789" * 10_000
    assert max(map(len, deltas)) == UPDATE_CHARS
    assert len(deltas) <= 10
