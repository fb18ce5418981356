"""When the reference runner does not start, what it says as it does, and who may ask it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.hands import PROJECT, envelope, hands_at, refused_start

TOKEN = "a-token-of-the-tests-0123"
ECHO = json.dumps(envelope("echo", {"text": "x"})).encode()
PROCESS = ("--isolation", "process")


def test_with_a_token_only_who_brings_it_may_execute(tmp_path: Path) -> None:
    with hands_at(tmp_path, *PROCESS, CONTINUITY_RUNNER_TOKEN=TOKEN) as hands:
        assert hands.post(ECHO, authorization=f"Bearer {TOKEN}")[0] == 200
        for given in ("", "Bearer", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN):
            status, told = hands.post(ECHO, authorization=given)
            assert (status, told["error"]["code"]) == (401, "UNAUTHORIZED"), given
        assert hands.post(ECHO)[0] == 401
        assert hands.post(b"no json")[0] == 401
        assert hands.ask("GET", "/health")[0] == 200


def test_commands_do_not_see_the_token(tmp_path: Path) -> None:
    with hands_at(tmp_path, *PROCESS, CONTINUITY_RUNNER_TOKEN=TOKEN) as hands:
        body = json.dumps(envelope("bash.exec", {"cmd": "env"})).encode()
        told = hands.post(body, authorization=f"Bearer {TOKEN}")[1]
    assert "PATH=" in told["result"]["output"]["stdout"]
    assert TOKEN not in json.dumps(told)


def test_on_an_open_address_a_token_is_needed_and_names_are_checked(tmp_path: Path) -> None:
    told = refused_start(tmp_path, *PROCESS, "--host", "0.0.0.0")
    assert "can be reached from other machines" in told
    open_to_all = ("--host", "0.0.0.0", "--name", "runner.internal")
    with hands_at(tmp_path, *PROCESS, *open_to_all, CONTINUITY_RUNNER_TOKEN=TOKEN) as hands:
        for host in ("10.1.2.3:18081", "runner.internal", "Runner.Internal:18081"):
            assert hands.ask("GET", "/health", host=host)[0] == 200
        assert hands.ask("GET", "/health", host="evil.example")[0] == 403


def test_what_cannot_be_is_said_in_one_sentence(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (root := home / "root").mkdir(parents=True)
    (tmp_path / "file").touch()
    overlapping = {"CONTINUITY_HOME": str(home)}
    assert "is no folder" in refused_start(tmp_path / "none", *PROCESS)
    assert "is no folder" in refused_start(tmp_path / "file", *PROCESS)
    assert "overlap" in refused_start(root, *PROCESS, **overlapping)
    assert "overlap" in refused_start(tmp_path, *PROCESS, **overlapping)
    assert "overlap" in refused_start(Path("/"), *PROCESS)
    assert "16 characters" in refused_start(tmp_path, *PROCESS, "--token", "short")
    assert "no-address" in refused_start(tmp_path, *PROCESS, CONTINUITY_EGRESS_ALLOW="no-address")
    assert "--memory-mb" in refused_start(tmp_path, *PROCESS, "--memory-mb", "1")


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "cannot be listened on" in refused_start(tmp_path, *PROCESS, "--port", port)
    assert "no port" in refused_start(tmp_path, *PROCESS, "--port", "70000")


def test_without_an_engine_docker_is_refused_and_nothing_takes_its_place(tmp_path: Path) -> None:
    nowhere = {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    told = refused_start(tmp_path, "--isolation", "docker", **nowhere)
    assert "No Docker engine answers" in told


def test_process_isolation_and_an_open_network_are_warned_of(tmp_path: Path) -> None:
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
        told = process.communicate(timeout=60)[1]
    assert "WARNING: --isolation process" in told
    assert "WARNING: with --allow-net" in told


def test_neither_django_nor_docker_is_loaded_to_serve() -> None:
    line = (
        "import sys; import runners.docker_runner.command_line;"
        "print([m for m in ('django', 'docker', 'playwright', 'celery') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", line], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_manage_py_lists_it_and_tells_its_options() -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "help", "docker_runner"],
        cwd=PROJECT,
        text=True,
        capture_output=True,
        check=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert "--isolation" in done.stdout
    assert "better in CONTINUITY_RUNNER_TOKEN" in done.stdout


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is absent")
def test_the_default_keeps_commands_in_their_folder(tmp_path: Path) -> None:
    (root := tmp_path / "root").mkdir()
    (tmp_path / "secret").write_text("the secret")
    with hands_at(root) as hands:
        assert hands.ask("GET", "/health")[1]["isolation"] == "bubblewrap"
        told = hands.output("bash.exec", cmd=f"echo x > made; pwd; cat {tmp_path}/secret")
        assert (told["stdout"], told["exitCode"]) == ("/workspace\n", 1)
        assert hands.output("file.read", path="made")["content"] == "x\n"
