"""What every isolation promises: without one, with bubblewrap, with containers of a simulated
engine, and of a real one where CONTINUITY_TEST_ENGINE has its address (`make fleet-trial` sets it).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runners.docker_runner.isolation.base import Command, Isolation, RunnerFolder
from runners.docker_runner.isolation.bubblewrap import BubblewrapIsolation
from runners.docker_runner.isolation.containers import ContainerIsolation
from runners.docker_runner.isolation.process import ProcessIsolation
from tests.support.runners.docker_runner_process import (
    CommandResult,
    RunnerProcess,
    link_sleep,
    processes_named,
    run_line,
    start_docker_runner,
)
from tests.support.runners.fake_docker_engine import IMAGE, docker_engine
from tests.support.runs.waiting import wait_until

REAL = "CONTINUITY_TEST_ENGINE"
KINDS = ("process", "bubblewrap", "simulated", *(("engine",) if REAL in os.environ else ()))
SLOW = pytest.mark.slow


@dataclass(frozen=True)
class Kind:
    """One isolation: the option of the runner, its variables, and the folder."""

    option: str
    env: dict[str, str]
    root: Path

    def isolation(self) -> Isolation:
        """Return it for use without a runner."""
        folder = RunnerFolder(self.root)
        if self.option == "process":
            return ProcessIsolation(folder)
        if self.option == "bubblewrap":
            return BubblewrapIsolation(folder)
        return ContainerIsolation(folder, IMAGE)

    def run(self, line: str, **options: Any) -> CommandResult:
        """Run a line."""
        isolation = self.isolation()
        try:
            return run_line(isolation, line, **options)
        finally:
            if isinstance(isolation, ContainerIsolation):
                isolation._engine.close()

    def runner(self) -> contextlib.AbstractContextManager[RunnerProcess]:
        """Start a runner with it."""
        return start_docker_runner(self.root, "--isolation", self.option, **self.env)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kind]:
    """Each isolation, with a folder that its commands may write."""
    if request.param != "process" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is absent")
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="iso-"))
        root, env = Path(folder).resolve() / "root", {}
        root.mkdir()
        if request.param == "simulated":
            env = {"DOCKER_HOST": stack.enter_context(docker_engine(Path(folder))).url}
        elif request.param == "engine":
            env = {"DOCKER_HOST": os.environ[REAL]}
            os.chown(root, 65534, 65534)
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        option = request.param if request.param in ("process", "bubblewrap") else "docker"
        yield Kind(option, env, root)


def test_a_command_has_its_folder_its_variables_and_an_empty_stdin(kind: Kind) -> None:
    (kind.root / "below").mkdir()
    line = "cat; pwd -P; echo $A >&2; exit 3"
    result = kind.run(line, folder="below", env={"A": "1"})
    assert (result.status, result.stderr) == (3, "1\n")
    assert result.stdout.endswith("/below\n")


def test_a_command_is_executed_by_bash_where_there_is_bash(kind: Kind) -> None:
    assert kind.run("words=(a b); [[ ${words[1]} == b ]] && echo ${#words[@]}").stdout == "2\n"


def test_a_command_can_write_the_folder_and_execute_what_it_writes_to_tmp(kind: Kind) -> None:
    copy = "f=$(mktemp); cp /bin/true $f; chmod +x $f; $f; s=$?; rm $f; exit $s"
    result = kind.run(f"echo x > made; {copy}")
    assert result.status == 0, result.stderr
    assert (kind.root / "made").read_text() == "x\n"


def test_a_command_that_a_signal_ends_has_128_and_the_number_as_status(kind: Kind) -> None:
    assert kind.run("kill -9 $$").status == 137


def test_output_is_complete_and_in_order(kind: Kind) -> None:
    assert kind.run("seq 60000").stdout == "".join(f"{number}\n" for number in range(1, 60001))


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind == "simulated" else SLOW) for kind in KINDS],
    indirect=True,
)
def test_nothing_of_a_command_is_left_after_its_time_limit(kind: Kind) -> None:
    name = link_sleep(kind.root)
    line = f"(setsid env -i ./{name} 600 &); echo began; ./{name} 600"
    result = kind.run(line, timeout_s=2)
    assert (result.status, result.stdout) == (None, "began\n")
    assert processes_named(name) == []


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        pytest.param(kind, number, marks=[] if kind == "simulated" else SLOW)
        for kind in KINDS
        for number in (signal.SIGTERM, signal.SIGKILL)
    ],
    indirect=["kind"],
)
def test_nothing_of_a_command_outlives_its_runner(kind: Kind, number: signal.Signals) -> None:
    name, answers = link_sleep(kind.root), []
    line = f"(setsid env -i ./{name} 600 &); ./{name} 600"

    def call(runner: RunnerProcess) -> None:
        with contextlib.suppress(OSError):  # the connection of a killed runner
            answers.append(runner.error("bash.exec", cmd=line))

    with kind.runner() as runner:
        calling = threading.Thread(target=call, args=(runner,))
        calling.start()
        wait_until(lambda: len(processes_named(name)) == 2)
        runner.process.send_signal(number)
        wait_until(lambda: not processes_named(name), 20)
        calling.join(60)
        runner.process.wait(60)
    if number == signal.SIGTERM:
        (answer,) = answers
        assert (answer["code"], answer["details"]) == ("INTERRUPTED", {"effect": "unknown"})


def test_a_call_that_is_cancelled_at_any_moment_leaves_nothing(kind: Kind) -> None:
    name = link_sleep(kind.root)
    isolation = kind.isolation()

    async def cancel_after(delay_s: float) -> None:
        async def run() -> None:
            running = await isolation.start(Command(f"./{name} 600", ".", {}, 60))
            try:
                await running.wait()
            finally:
                await running.end()

        task = asyncio.create_task(run())
        await asyncio.sleep(delay_s)
        task.cancel()
        await asyncio.wait({task})

    async def cancel_often() -> None:
        await asyncio.gather(*(cancel_after(number * 0.02) for number in range(6)))

    asyncio.run(cancel_often())
    wait_until(lambda: not processes_named(name))
