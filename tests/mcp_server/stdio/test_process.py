"""The process that a host starts: its imports, its output streams, its exit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from django.utils.module_loading import import_string

from runners.product import VERSION
from tests.support.installation.mcp_process import (
    INITIALIZE,
    INITIALIZED,
    MANAGE,
    ROOT,
    own_database,
    talk,
)

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
HEAVY = ("playwright", "celery", "kombu", "redis", "rest_framework", "django.contrib.admin", "rich")
NOISY_SETTINGS = """
import os
print("a greeting from python", flush=True)
os.system("echo a greeting from a child; cat")
from config.settings import *
"""
NOISY_TEMPLATES = """
import os
print("printed by a template")
os.write(1, b"written by a C library\\n")
"""


def call(request_id: object, tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return own_database(tmp_path_factory.mktemp("mcp"))


@pytest.mark.slow
def test_the_handshake_and_the_list_load_nothing_heavy(env: dict[str, str]) -> None:
    answers, stderr = talk(INITIALIZE, INITIALIZED, LIST, env=env, flags=("-X", "importtime"))
    loaded = {line.rpartition("|")[2].strip() for line in stderr.splitlines() if "|" in line}
    assert len(answers) == 2
    assert {"mcp_server.server", "runs.streaming.long_poll"} <= loaded
    assert [name for name in loaded for heavy in HEAVY if f"{name}.".startswith(f"{heavy}.")] == []


def test_stdout_contains_only_protocol_messages(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "noisy_settings.py").write_text(NOISY_SETTINGS)
    (tmp_path / "noisy_templates.py").write_text(NOISY_TEMPLATES)
    noisy = {
        **env,
        "PYTHONPATH": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "noisy_settings",
        "CONTINUITY_TEMPLATE_MODULES": "noisy_templates",
    }
    list_call = call(2, "list_task_templates")
    answers, stderr = talk(INITIALIZE, INITIALIZED, LIST, list_call, env=noisy)
    assert [answer["id"] for answer in answers] == [0, 1, 2]
    for greeting in ("from python", "from a child", "by a template", "by a C library"):
        assert greeting in stderr


@pytest.mark.slow
def test_calls_in_flight_are_answered_when_stdin_closes(env: dict[str, str]) -> None:
    calls = [call(number, "get_runtime_profile") for number in range(5)]
    answers, _ = talk(INITIALIZE, INITIALIZED, *calls, env=env)
    assert len(answers) == 6
    assert not any(answer["result"].get("isError") for answer in answers)


@pytest.mark.slow
def test_invalid_lines_get_errors_and_valid_lines_between_them_get_results(
    env: dict[str, str],
) -> None:
    answers, _ = talk(
        INITIALIZE,
        b"no json",
        INITIALIZED,
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        call("nan", "get_task_run", runId=float("nan")),
        call("last", "get_runtime_profile"),
        env=env,
    )
    codes = [answer["error"]["code"] for answer in answers if "error" in answer]
    assert codes == [-32700, -32600, -32700, -32700]
    results = {answer["id"]: answer["result"] for answer in answers if "result" in answer}
    assert "INVALID_PARAMETER" in results["nan"]["content"][0]["text"]
    assert results["last"]["isError"] is False


def test_a_line_over_8_mib_gets_an_error_and_is_skipped(env: dict[str, str]) -> None:
    long = call(7, "get_task_run", runId="x" * (9 * 1024 * 1024))
    answers, _ = talk(INITIALIZE, INITIALIZED, long, call(8, "get_runtime_profile"), env=env)
    by_id = {answer["id"]: answer for answer in answers}
    assert by_id[7]["error"]["code"] == -32600
    assert "8388608" in by_id[7]["error"]["message"]
    assert by_id[8]["result"]["isError"] is False


@pytest.mark.slow
def test_a_line_just_under_8_mib_is_processed(env: dict[str, str]) -> None:
    long = call(7, "get_task_run", runId="x" * (8 * 1024 * 1024 - 200))
    answers, _ = talk(INITIALIZE, INITIALIZED, long, env=env)
    text = answers[-1]["result"]["content"][0]["text"]
    assert "INVALID_PARAMETER" in text
    assert len(text) < 2000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--toolsets", "runtime,nope"], "Unknown toolset: nope. Known: "),
        (["--toolsets", ""], "No toolset was named."),
        (["--workspace", "/no/such/folder"], "--workspace: there is no folder"),
    ],
)
def test_an_invalid_option_is_reported_on_stderr(
    env: dict[str, str], arguments: list[str], expected: str
) -> None:
    result = subprocess.run(
        [sys.executable, MANAGE, "mcp_stdio", *arguments],
        input="",
        capture_output=True,
        text=True,
        env=env,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert expected in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_the_environment_can_select_toolsets(env: dict[str, str]) -> None:
    chosen = {**env, "CONTINUITY_MCP_TOOLSETS": "nope"}
    result = subprocess.run(
        [sys.executable, MANAGE, "mcp_stdio"],
        input="",
        capture_output=True,
        text=True,
        env=chosen,
        timeout=60,
        check=False,
    )
    assert (result.returncode, "Unknown toolset: nope" in result.stderr) == (2, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_without_a_traceback(env: dict[str, str], number: int) -> None:
    with subprocess.Popen(
        [sys.executable, MANAGE, "mcp_stdio"],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        process.stdin.flush()
        assert b"continuity" in process.stdout.readline()
        process.send_signal(number)
        _, stderr = process.communicate(timeout=10)
    assert b"Traceback" not in stderr


def test_the_process_exits_when_the_host_closes_stdout(env: dict[str, str]) -> None:
    read_fd, write_fd = os.pipe()
    with subprocess.Popen(
        [sys.executable, MANAGE, "mcp_stdio"],
        env=env,
        stdin=subprocess.PIPE,
        stdout=write_fd,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(write_fd)
        os.close(read_fd)
        _, stderr = process.communicate(json.dumps(INITIALIZE).encode() + b"\n", timeout=30)
    assert process.returncode == 0
    assert b"Traceback" not in stderr


@pytest.mark.slow
def test_a_database_without_tables_is_a_clear_error_of_the_call(tmp_path: Path) -> None:
    env = {
        **os.environ,
        "CONTINUITY_HOME": str(tmp_path / "home"),
        "DATABASE_URL": f"sqlite:///{tmp_path}/empty.sqlite3",
    }
    answers, _ = talk(INITIALIZE, INITIALIZED, call(1, "list_task_runs"), env=env)
    error = json.loads(answers[-1]["result"]["content"][0]["text"])
    assert error["errorCode"] == "EXECUTION_ERROR"
    assert "manage.py migrate" in error["message"]
    assert error["retryable"] is True


def config(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, MANAGE, "mcp_config", *arguments]
    return subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=60, check=True, cwd="/"
    )


def test_mcp_config_prints_a_stanza_that_works_from_anywhere(env: dict[str, str]) -> None:
    result = config(env, "--name", "local")
    stanza = json.loads(result.stdout)["mcpServers"]["local"]
    assert stanza["command"] == sys.executable
    assert stanza["args"] == [str(ROOT / "manage.py"), "mcp_stdio"]
    assert stanza["env"] == {"CONTINUITY_HOME": env["CONTINUITY_HOME"]}
    assert "DATABASE_URL" in result.stderr
    assert env["CONTINUITY_SECRET_KEYS"] not in result.stdout + result.stderr


def test_mcp_config_omits_the_default_home(env: dict[str, str]) -> None:
    usual = {**env, "CONTINUITY_HOME": str(ROOT / ".continuity")}
    stanza = json.loads(config(usual).stdout)["mcpServers"]["continuity"]
    assert "env" not in stanza


@pytest.mark.parametrize(
    ("arguments", "kind", "url"),
    [
        (["--http"], "http", "http://127.0.0.1:8000/mcp"),
        (["--http", "https://team.example/"], "http", "https://team.example/mcp"),
        (["--http", "https://team.example", "--sse"], "sse", "https://team.example/sse"),
    ],
)
def test_mcp_config_prints_a_stanza_for_a_server_address(
    env: dict[str, str], arguments: list[str], kind: str, url: str
) -> None:
    stanza = json.loads(config(env, *arguments).stdout)["mcpServers"]["continuity"]
    headers = {"Authorization": "Bearer ${CONTINUITY_TOKEN}"}
    assert stanza == {"type": kind, "url": url, "headers": headers}


def test_the_version_matches_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    version = project["tool"]["setuptools"]["dynamic"]["version"]["attr"]
    assert import_string(version) == VERSION
