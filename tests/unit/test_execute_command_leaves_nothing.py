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
from tests.support.project import Project
from tests.support.waiting import wait_until

pytest_plugins = ["tests.support.project_fixtures"]

NOBODY = 65534
WORKER = """
import sys
from pathlib import Path
from tests.support.project import Project
Project(Path(sys.argv[1])).call("execute_command", scriptName="dev")
"""


@pytest.fixture
def nap(game: Project) -> Iterator[str]:
    """Yield a command that sleeps longer than any test, and kill its leftover processes."""
    name = f"nap-{os.urandom(6).hex()}"
    (game.root / name).symlink_to("/bin/sleep")
    yield f"./{name} 86400"
    for process in sleepers(name):
        process.kill()


def sleepers(command: str) -> list[psutil.Process]:
    """Return the processes that run the command."""
    name = command.split()[0]
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = process.info["cmdline"] or []
        if line and line[0].endswith(name) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def late(game: Project, script: str, **policy: Any) -> dict[str, Any]:
    """Run a script that times out and return the error."""
    game.policy = {"command_timeout_ms": 1500, **policy}
    game.scripts(build=script)
    return game.error("execute_command", scriptName="build")


def test_a_script_that_times_out_is_stopped_and_its_output_so_far_is_returned(
    game: Project, nap: str
) -> None:
    error = late(game, f"echo one; {nap}")
    assert error["errorCode"] == "E_TIMEOUT"
    assert error["details"]["logs"][-1] == "one"
    assert error["details"]["timeoutMs"] == 1500
    assert sleepers(nap) == []


def test_child_processes_of_a_script_that_times_out_are_stopped(game: Project, nap: str) -> None:
    late(game, f"{nap} & {nap} & (setsid {nap} &) ; setsid sh -c '{nap} & {nap}'")
    assert sleepers(nap) == []


def test_a_script_that_ignores_signals_is_killed(game: Project, nap: str) -> None:
    error = late(game, f"trap 'echo no' TERM INT HUP; while :; do {nap}; done")
    assert error["errorCode"] == "E_TIMEOUT"
    assert sleepers(nap) == []


def test_a_script_gets_sigterm_before_sigkill(game: Project) -> None:
    error = late(game, "trap 'echo goodbye; exit 0' TERM; while :; do sleep 0.05; done")
    assert error["details"]["logs"][-1] == "goodbye"


def test_background_processes_of_a_finished_script_are_stopped(game: Project, nap: str) -> None:
    game.scripts(build=f"{nap} & (setsid {nap} &) ; echo done")
    told = game.output("execute_command", scriptName="build")
    assert (told["ok"], told["logs"][-1]) == (True, "done")
    assert sleepers(nap) == []


def test_a_script_that_kills_its_own_process_group_leaves_nothing(game: Project, nap: str) -> None:
    game.scripts(build=f"(setsid {nap} &) ; echo going; kill -9 0")
    told = game.output("execute_command", scriptName="build")
    assert (told["ok"], told["logs"][1]) == (False, "going")
    assert sleepers(nap) == []


async def _cancelled(game: Project, nap: str) -> None:
    calling = asyncio.create_task(
        invoke(ToolCall("execute_command", {"scriptName": "dev"}), game.context())
    )
    await asyncio.to_thread(wait_until, lambda: len(sleepers(nap)) == 2)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert sleepers(nap) == []


def test_no_process_is_left_when_the_caller_is_cancelled(game: Project, nap: str) -> None:
    game.scripts(dev=f"(setsid {nap} &) ; trap '' TERM; {nap}")
    asyncio.run(_cancelled(game, nap))


async def _cancelled_over_and_over(game: Project, nap: str) -> None:
    for turns in range(30):
        calling = asyncio.create_task(
            invoke(ToolCall("execute_command", {"scriptName": "dev"}), game.context())
        )
        for _ in range(turns):
            await asyncio.sleep(0.001)
        calling.cancel()
        await asyncio.sleep(0)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
    await asyncio.to_thread(wait_until, lambda: not sleepers(nap))


def test_no_process_is_left_after_a_cancel_at_any_moment(game: Project, nap: str) -> None:
    game.scripts(dev=f"(setsid {nap} &) ; {nap}")
    asyncio.run(_cancelled_over_and_over(game, nap))


def test_no_process_is_left_when_the_worker_is_killed(game: Project, nap: str) -> None:
    game.scripts(dev=f"(setsid {nap} &) ; trap '' TERM; {nap}")
    worker = subprocess.Popen([sys.executable, "-c", WORKER, str(game.root)])
    try:
        wait_until(lambda: len(sleepers(nap)) == 2)
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    wait_until(lambda: not sleepers(nap))


@pytest.fixture
def shared_root() -> Iterator[Path]:
    """Yield a project folder that every user may write to."""
    with tempfile.TemporaryDirectory(prefix="continuity-project-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone can become another user")
def test_scripts_run_and_are_stopped_as_another_user(game: Project, shared_root: Path) -> None:
    game.scripts(build="true")
    game.output("execute_command", scriptName="build")  # load lazy imports before the fork
    game.root = shared_root
    game.scripts(build="id -u; sleep 86400 & echo", lint="echo so far; sleep 86400")
    (shared_root / "package.json").chmod(0o644)
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        _as_nobody(game, writing)
    os.close(writing)
    with open(reading) as told:  # noqa: PTH123  (a descriptor)
        answer = json.load(told)
    os.waitpid(child, 0)
    assert (answer["build"]["ok"], answer["build"]["logs"][1:]) == (True, ["65534", "$(id)"])
    assert answer["late"]["details"]["logs"][-1] == "so far"


def _as_nobody(game: Project, writing: int) -> None:
    """Run in the forked child: call the tool as user 65534, write the results and exit."""
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        game.policy = {"command_timeout_ms": 1500}
        build = game.output("execute_command", scriptName="build", args=["$(id)"])
        late = game.error("execute_command", scriptName="lint")
        os.write(writing, json.dumps({"build": build, "late": late}).encode())
    finally:
        os._exit(0)
