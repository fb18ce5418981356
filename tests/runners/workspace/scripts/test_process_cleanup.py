"""No process of a script survives it: at success, timeout, cancellation or a killed worker."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from runners.invocation.invoke import invoke
from runners.tools.base import ToolCall
from tests.support.runs.waiting import wait_until
from tests.support.workspace.project import Project

NOBODY = 65534
WORKER = """
import sys
from pathlib import Path
from tests.support.workspace.project import Project
Project(Path(sys.argv[1])).call("execute_command", scriptName="dev")
"""


@pytest.fixture
def sleep_command(game: Project) -> Iterator[str]:
    """Yield a command that sleeps longer than any test, and kill its leftover processes."""
    name = f"nap-{os.urandom(6).hex()}"
    (game.root / name).symlink_to("/bin/sleep")
    yield f"./{name} 86400"
    for process in processes_running(name):
        process.kill()


def processes_running(command: str) -> list[psutil.Process]:
    """Return the processes that run the command."""
    name = command.split()[0]
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = process.info["cmdline"] or []
        if line and line[0].endswith(name) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def run_until_timeout(game: Project, script: str, **policy: Any) -> dict[str, Any]:
    """Run a script that times out and return the error."""
    game.policy = {"command_timeout_ms": 1500, **policy}
    game.scripts(build=script)
    return game.error("execute_command", scriptName="build")


@pytest.mark.slow
def test_a_script_that_times_out_is_stopped_and_its_output_so_far_is_returned(
    game: Project, sleep_command: str
) -> None:
    error = run_until_timeout(game, f"echo one; {sleep_command}")
    assert error["errorCode"] == "E_TIMEOUT"
    assert error["details"]["logs"][-1] == "one"
    assert error["details"]["timeoutMs"] == 1500
    assert processes_running(sleep_command) == []


@pytest.mark.slow
def test_child_processes_of_a_script_that_times_out_are_stopped(
    game: Project, sleep_command: str
) -> None:
    sleep = sleep_command
    run_until_timeout(
        game, f"{sleep} & {sleep} & (setsid {sleep} &) ; setsid sh -c '{sleep} & {sleep}'"
    )
    assert processes_running(sleep_command) == []


@pytest.mark.slow
def test_a_script_that_ignores_signals_is_killed(game: Project, sleep_command: str) -> None:
    error = run_until_timeout(
        game, f"trap 'echo no' TERM INT HUP; while :; do {sleep_command}; done"
    )
    assert error["errorCode"] == "E_TIMEOUT"
    assert processes_running(sleep_command) == []


@pytest.mark.slow
def test_a_script_gets_sigterm_before_sigkill(game: Project) -> None:
    error = run_until_timeout(
        game, "trap 'echo goodbye; exit 0' TERM; while :; do sleep 0.05; done"
    )
    assert error["details"]["logs"][-1] == "goodbye"


def test_background_processes_of_a_finished_script_are_stopped(
    game: Project, sleep_command: str
) -> None:
    game.scripts(build=f"{sleep_command} & (setsid {sleep_command} &) ; echo done")
    result = game.output("execute_command", scriptName="build")
    assert (result["ok"], result["logs"][-1]) == (True, "done")
    assert processes_running(sleep_command) == []


def test_a_script_that_kills_its_own_process_group_leaves_nothing(
    game: Project, sleep_command: str
) -> None:
    game.scripts(build=f"(setsid {sleep_command} &) ; echo going; kill -9 0")
    result = game.output("execute_command", scriptName="build")
    assert (result["ok"], result["logs"][1]) == (False, "going")
    assert processes_running(sleep_command) == []


async def _cancel_and_check(game: Project, sleep_command: str) -> None:
    call_task = asyncio.create_task(
        invoke(ToolCall("execute_command", {"scriptName": "dev"}), game.context())
    )
    await asyncio.to_thread(wait_until, lambda: len(processes_running(sleep_command)) == 2)
    call_task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call_task
    assert processes_running(sleep_command) == []


def test_a_process_that_left_the_group_and_cleared_its_environment_is_stopped(
    game: Project, sleep_command: str
) -> None:
    game.scripts(build=f"(env -i setsid {sleep_command} &) ; echo done")
    assert game.output("execute_command", scriptName="build")["logs"][-1] == "done"
    assert processes_running(sleep_command) == []


def test_no_process_is_left_when_the_caller_is_cancelled(game: Project, sleep_command: str) -> None:
    game.scripts(dev=f"(setsid {sleep_command} &) ; trap '' TERM; {sleep_command}")
    asyncio.run(_cancel_and_check(game, sleep_command))


async def _cancel_repeatedly(game: Project, sleep_command: str) -> None:
    for delay_ms in range(30):
        call_task = asyncio.create_task(
            invoke(ToolCall("execute_command", {"scriptName": "dev"}), game.context())
        )
        for _ in range(delay_ms):
            await asyncio.sleep(0.001)
        call_task.cancel()
        await asyncio.sleep(0)
        call_task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call_task
    await asyncio.to_thread(wait_until, lambda: not processes_running(sleep_command))


@pytest.mark.slow
def test_no_process_is_left_after_a_cancel_at_any_moment(game: Project, sleep_command: str) -> None:
    game.scripts(dev=f"(setsid {sleep_command} &) ; {sleep_command}")
    asyncio.run(_cancel_repeatedly(game, sleep_command))


def test_no_process_is_left_when_the_worker_is_killed(game: Project, sleep_command: str) -> None:
    game.scripts(dev=f"(setsid {sleep_command} &) ; trap '' TERM; {sleep_command}")
    worker = subprocess.Popen([sys.executable, "-c", WORKER, str(game.root)])
    try:
        wait_until(lambda: len(processes_running(sleep_command)) == 2)
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    wait_until(lambda: not processes_running(sleep_command))


@pytest.fixture
def shared_root() -> Iterator[Path]:
    """Yield a project folder that every user may write to."""
    with tempfile.TemporaryDirectory(prefix="continuity-project-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="root alone can become another user")
def test_scripts_run_and_are_stopped_as_another_user(game: Project, shared_root: Path) -> None:
    game.scripts(build="true")
    game.output("execute_command", scriptName="build")  # load lazy imports before the fork
    game.root = shared_root
    game.scripts(build="id -u; sleep 86400 & echo", lint="echo so far; sleep 86400")
    (shared_root / "package.json").chmod(0o644)
    read_end, write_end = os.pipe()
    if (child := os.fork()) == 0:
        _as_nobody(game, write_end)
    os.close(write_end)
    with open(read_end) as result:  # noqa: PTH123  (a descriptor)
        answer = json.load(result)
    os.waitpid(child, 0)
    assert (answer["build"]["ok"], answer["build"]["logs"][1:]) == (True, ["65534", "$(id)"])
    assert answer["late"]["details"]["logs"][-1] == "so far"


def _as_nobody(game: Project, write_end: int) -> None:
    """Run in the forked child: call the tool as user 65534, write the results and exit."""
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        if not os.access(sys.executable, os.X_OK):  # it is in root's home
            sys.executable = "/usr/bin/python3"
        game.policy = {"command_timeout_ms": 1500}
        build = game.output("execute_command", scriptName="build", args=["$(id)"])
        run_until_timeout = game.error("execute_command", scriptName="lint")
        os.write(write_end, json.dumps({"build": build, "late": run_until_timeout}).encode())
    finally:
        os._exit(0)
