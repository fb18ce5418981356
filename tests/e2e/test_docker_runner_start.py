"""Test when the reference runner refuses to start, what it prints, and who may call it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from runners.docker_runner import command_line
from tests.support.runners.docker_runner_process import (
    PROJECT,
    execute_body,
    refused_start,
    start_docker_runner,
)

TOKEN = "a-token-of-the-tests-0123"
ECHO = json.dumps(execute_body("echo", {"text": "x"})).encode()
PROCESS = ("--isolation", "process")


def test_a_runner_with_a_token_executes_only_for_callers_with_the_token(tmp_path: Path) -> None:
    with start_docker_runner(tmp_path, *PROCESS, CONTINUITY_RUNNER_TOKEN=TOKEN) as runner:
        assert runner.post(ECHO, authorization=f"Bearer {TOKEN}")[0] == 200
        for authorization in (
            "",
            "Bearer",
            "Bearer x",
            f"Basic {TOKEN}",
            f"Bearer {TOKEN}x",
            TOKEN,
        ):
            status, output = runner.post(ECHO, authorization=authorization)
            assert (status, output["error"]["code"]) == (401, "UNAUTHORIZED"), authorization
        assert runner.post(ECHO)[0] == 401
        assert runner.post(b"no json")[0] == 401
        assert runner.request("GET", "/health")[0] == 200


def test_commands_do_not_see_the_token(tmp_path: Path) -> None:
    with start_docker_runner(tmp_path, *PROCESS, CONTINUITY_RUNNER_TOKEN=TOKEN) as runner:
        body = json.dumps(execute_body("bash.exec", {"cmd": "env"})).encode()
        output = runner.post(body, authorization=f"Bearer {TOKEN}")[1]
    assert "PATH=" in output["result"]["output"]["stdout"]
    assert TOKEN not in json.dumps(output)


def test_commands_do_not_see_the_runners_other_variables(tmp_path: Path) -> None:
    secret = {"DATABASE_URL": "postgresql://user:hidden-value@localhost/x"}
    with start_docker_runner(tmp_path, *PROCESS, **secret) as runner:
        printed = runner.output("bash.exec", cmd="env")["stdout"]
    assert "PATH=" in printed
    assert "hidden-value" not in printed


@pytest.mark.slow
def test_a_public_address_requires_a_token_and_checks_host_names(tmp_path: Path) -> None:
    output = refused_start(tmp_path, *PROCESS, "--host", "0.0.0.0")
    assert "Other machines can connect" in output
    open_to_all = ("--host", "0.0.0.0", "--name", "runner.internal")
    with start_docker_runner(
        tmp_path, *PROCESS, *open_to_all, CONTINUITY_RUNNER_TOKEN=TOKEN
    ) as runner:
        for host in ("10.1.2.3:18081", "runner.internal", "Runner.Internal:18081"):
            assert runner.request("GET", "/health", host=host)[0] == 200
        assert runner.request("GET", "/health", host="evil.example")[0] == 403


@pytest.mark.parametrize(
    ("home", "options"),
    [
        pytest.param("home", ["--host", "0.0.0.0"], id="no token"),
        pytest.param("home", ["--token", "short"], id="short token"),
        pytest.param(".", [], id="folder in the home"),
    ],
)
def test_a_runner_with_unsafe_options_does_not_serve(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    home: str,
    options: list[str],
) -> None:
    (root := tmp_path / "root").mkdir()
    monkeypatch.setenv("CONTINUITY_HOME", str(tmp_path / home))
    monkeypatch.setattr(command_line, "serve", lambda app, listener: None)
    command = ["--root", str(root), "--port", "0", *PROCESS]
    assert command_line.main([*command, *options]) == 1
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("CONTINUITY_HOME", str(tmp_path / "home"))
    assert command_line.main(command) == 0


@pytest.mark.slow
def test_an_invalid_option_is_reported_in_one_sentence(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (root := home / "root").mkdir(parents=True)
    (tmp_path / "file").touch()
    overlapping = {"CONTINUITY_HOME": str(home)}
    assert "is not a folder" in refused_start(tmp_path / "none", *PROCESS)
    assert "is not a folder" in refused_start(tmp_path / "file", *PROCESS)
    assert "overlap" in refused_start(root, *PROCESS, **overlapping)
    assert "overlap" in refused_start(tmp_path, *PROCESS, **overlapping)
    assert "overlap" in refused_start(Path("/"), *PROCESS)
    assert "16 ASCII characters" in refused_start(tmp_path, *PROCESS, "--token", "short")
    assert "no-address" in refused_start(tmp_path, *PROCESS, CONTINUITY_EGRESS_ALLOW="no-address")
    assert "--memory-mb" in refused_start(tmp_path, *PROCESS, "--memory-mb", "1")


@pytest.mark.slow
def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        assert "Cannot listen on" in refused_start(tmp_path, *PROCESS, "--port", port)
    assert "not a valid port" in refused_start(tmp_path, *PROCESS, "--port", "70000")


@pytest.mark.slow
def test_docker_isolation_without_an_engine_is_refused_without_a_fallback(tmp_path: Path) -> None:
    no_engine = {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    output = refused_start(tmp_path, "--isolation", "docker", **no_engine)
    assert "No Docker engine answers" in output


@pytest.mark.slow
def test_process_isolation_and_network_access_print_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "manage.py", "docker_runner", "--root", str(tmp_path)]
    with subprocess.Popen(
        [*command, "--port", "0", *PROCESS, "--allow-net"],
        cwd=PROJECT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert f"folder {tmp_path}" in process.stdout.readline()
        process.terminate()
        output = process.communicate(timeout=60)[1]
    assert "WARNING: --isolation process" in output
    assert "WARNING: with --allow-net" in output


def test_a_signal_before_the_server_runs_ends_the_runner(tmp_path: Path) -> None:
    code = """
import os, signal, sys, uvicorn
from runners.docker_runner import command_line
run = uvicorn.Server.run
def run_after_the_signal(self, sockets):
    os.kill(os.getpid(), signal.SIGTERM)
    run(self, sockets)
uvicorn.Server.run = run_after_the_signal
sys.exit(command_line.main(sys.argv[1:]))
"""
    arguments = ["--root", str(tmp_path), "--port", "0", *PROCESS]
    completed = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=PROJECT, capture_output=True, timeout=20
    )
    assert completed.returncode == 0


def test_serving_loads_neither_django_nor_docker() -> None:
    code = (
        "import sys; import runners.docker_runner.command_line;"
        "print([m for m in ('django', 'docker', 'playwright', 'celery') if m in sys.modules])"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert completed.stdout.strip() == "[]"


@pytest.mark.slow
def test_manage_py_help_lists_the_runners_options() -> None:
    completed = subprocess.run(
        [sys.executable, "manage.py", "help", "docker_runner"],
        cwd=PROJECT,
        text=True,
        capture_output=True,
        check=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert "--isolation" in completed.stdout
    assert "prefer CONTINUITY_RUNNER_TOKEN" in completed.stdout


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is absent")
def test_the_default_isolation_confines_commands_to_their_folder(tmp_path: Path) -> None:
    (root := tmp_path / "root").mkdir()
    (tmp_path / "secret").write_text("the secret")
    with start_docker_runner(root) as runner:
        assert runner.request("GET", "/health")[1]["isolation"] == "bubblewrap"
        output = runner.output("bash.exec", cmd=f"echo x > made; pwd; cat {tmp_path}/secret")
        assert (output["stdout"], output["exitCode"]) == ("/workspace\n", 1)
        assert runner.output("file.read", path="made")["content"] == "x\n"
