"""Start a real docker-runner, and run commands under its isolations."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from runners.docker_runner.errors import IsolationMissing
from runners.docker_runner.isolation.base import Command, Isolation, RunnerFolder
from runners.docker_runner.isolation.bubblewrap import BubblewrapIsolation

PROJECT = Path(__file__).parents[3]
TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The outcome of a command; status is None if it timed out."""

    status: int | None
    stdout: str
    stderr: str


def run_line(
    isolation: Isolation,
    line: str,
    *,
    timeout_s: float = TIMEOUT_S,
    folder: str = ".",
    env: Mapping[str, str] | None = None,
) -> CommandResult:
    """Run a command line until it exits or its deadline expires."""
    return asyncio.run(_run(isolation, Command(line, folder, env or {}, timeout_s)))


async def _run(isolation: Isolation, command: Command) -> CommandResult:
    output = {"stdout": b"", "stderr": b""}
    status = None
    running = await isolation.start(command)
    try:
        async with asyncio.timeout(command.timeout_s):
            async for stream, data in running.pieces():
                output[stream] += data
            status = await running.wait()
    except TimeoutError:
        pass
    finally:
        await running.end()
    return CommandResult(status, output["stdout"].decode(), output["stderr"].decode())


def processes_named(name: str) -> list[psutil.Process]:
    """Return the running processes of a program with this (unique) name."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = process.info["cmdline"] or []
        if line and line[0].endswith(name) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def link_sleep(root: Path) -> str:
    """Link /bin/sleep into the folder under a unique name and return the name."""
    name = f"nap-{os.urandom(6).hex()}"
    (root / name).symlink_to("/bin/sleep")
    return name


def execute_body(name: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request body as a gateway sends it (S3 §3)."""
    return {
        "call": {"name": name, "args": dict(args)},
        "ctx": {
            "runId": "run_1",
            "sessionId": "s_1",
            "runtimeMode": "local",
            "toolCallId": "tool_1",
        },
        "target": {
            "targetId": "target_1",
            "kind": "docker-runner",
            "tenantId": "t_1",
            "workspaceId": None,
        },
    }


class RunnerProcess:
    """A docker-runner in a separate process."""

    def __init__(self, process: subprocess.Popen[str], port: int, root: Path) -> None:
        self.process, self.port, self.root = process, port, root

    def open(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Send a request; return the connection and the response when its headers arrived."""
        connection = self.send(method, path, body, **headers)
        return connection, connection.getresponse()

    def send(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> http.client.HTTPConnection:
        """Send a request without waiting for the response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        sent_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body=body, headers=sent_headers)
        return connection

    def request(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, Any]:
        """Send a request and return status and JSON of the response."""
        connection, response = self.open(method, path, body, **headers)
        data = response.read()
        connection.close()
        return response.status, json.loads(data) if data else None

    def post(self, body: bytes, **headers: str) -> tuple[int, Any]:
        """Post bytes to /execute, with content type JSON unless headers override it."""
        return self.request(
            "POST", "/execute", body, **{"content_type": "application/json", **headers}
        )

    def call(self, name: str, **args: Any) -> dict[str, Any]:
        """Call a tool and return its ToolResult."""
        status, body = self.post(json.dumps(execute_body(name, args)).encode())
        assert status == 200, body
        result: dict[str, Any] = body["result"]
        return result

    def output(self, name: str, **args: Any) -> dict[str, Any]:
        """Call a tool that must succeed and return its output."""
        result = self.call(name, **args)
        assert result["ok"], result
        output: dict[str, Any] = result["output"]
        return output

    def error(self, name: str, **args: Any) -> dict[str, Any]:
        """Call a tool that must fail and return its error."""
        result = self.call(name, **args)
        assert not result["ok"], result
        error: dict[str, Any] = result["error"]
        return error


def best_isolation(root: Path) -> str:
    """Return the strongest isolation that this machine supports without a container engine."""
    try:
        asyncio.run(BubblewrapIsolation(RunnerFolder(root)).check())
    except IsolationMissing:
        return "process"
    return "bubblewrap"


def runner_command(root: Path, *options: str) -> list[str]:
    """Return the command that starts a runner on a free port."""
    start = [sys.executable, "manage.py", "docker_runner", "--root", str(root), "--port", "0"]
    return [*start, *options]


@contextmanager
def start_docker_runner(root: Path, *options: str, **env: str) -> Iterator[RunnerProcess]:
    """Run a docker-runner for the length of the block."""
    process = subprocess.Popen(
        runner_command(root, *options),
        cwd=PROJECT,
        env={**os.environ, **env},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        match = re.search(r":([0-9]+),", ready)
        assert match, f"it did not start: {ready!r}"
        yield RunnerProcess(process, int(match[1]), root)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(TIMEOUT_S)
        finally:
            process.kill()
            process.stdout.close()
            process.wait()


def refused_start(root: Path, *options: str, **env: str) -> str:
    """Start a runner that must refuse to start, and return its error message."""
    process = subprocess.run(
        runner_command(root, *options),
        cwd=PROJECT,
        env={**os.environ, **env},
        text=True,
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert process.returncode == 1, process
    assert not process.stdout
    assert "Traceback" not in process.stderr
    return process.stderr
