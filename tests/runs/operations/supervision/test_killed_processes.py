"""No process of a stack outlives it, whichever is killed; a part that need not end keeps
running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from runs.operations.home.paths import HomePaths
from runs.operations.home.state import StackInfo, is_up, stack_info
from tests.support.runs.waiting import eventually

END_TIMEOUT_S = 12.0
Start = Callable[..., "Stack"]


class Stack:
    """A running stack whose parts are fakes."""

    def __init__(self, home: Path, *changes: str) -> None:
        self.paths = HomePaths(home)
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.support.installation.stand_in_stack",
                str(home),
                *changes,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )

    def read_until(self, word: str) -> str:
        """Return the first line that contains the word; fail at the end of the output."""
        assert self.process.stdout
        for line in self.process.stdout:
            if word in line:
                return line
        raise AssertionError(f"no line with {word!r}")

    @property
    def info(self) -> StackInfo:
        info = stack_info(self.paths)
        assert info is not None
        return info

    def pid(self, name: str) -> int:
        """Return the process id of a part, of the watcher, or of the supervisor."""
        if name == "supervisor":
            return self.process.pid
        return next(part.pid or 0 for part in self.info.services if part.name == name)

    def processes(self) -> list[psutil.Process]:
        """Return every process of the stack."""
        return psutil.Process(self.process.pid).children(recursive=True)


@pytest.fixture
def start_stack(tmp_path: Path) -> Iterator[Start]:
    stacks: list[Stack] = []

    def start(*changes: str) -> Stack:
        stacks.append(Stack(tmp_path, *changes))
        stacks[-1].read_until("ready\n")
        return stacks[-1]

    yield start
    for stack in stacks:
        stack.process.terminate()
        stack.process.communicate(timeout=20)


def still_running(processes: list[psutil.Process]) -> list[psutil.Process]:
    return psutil.wait_procs(processes, timeout=END_TIMEOUT_S)[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "killed",
    [
        ["supervisor"],
        ["supervisor", "watcher"],
        ["supervisor", "worker"],
        ["supervisor", "redis"],
        ["supervisor", "watcher", "worker"],
        ["supervisor", "watcher", "redis"],
    ],
    ids="+".join,
)
def test_no_process_remains_when_the_supervisor_is_killed(
    start_stack: Start, killed: list[str]
) -> None:
    stack = start_stack()
    processes = stack.processes()
    assert len(processes) >= 8  # watcher, three parts, three guards, one child that left its group
    for pid in [stack.pid(name) for name in killed]:
        os.kill(pid, signal.SIGKILL)
    assert still_running(processes) == []
    assert not is_up(stack.paths)


def test_a_killed_supervisor_leaves_no_state_behind(start_stack: Start) -> None:
    stack = start_stack()
    stack.process.kill()
    assert eventually(lambda: not is_up(stack.paths))
    assert stack_info(stack.paths) is None


def test_a_killed_watcher_is_replaced_and_the_parts_keep_running(start_stack: Start) -> None:
    stack = start_stack()
    watcher, parts = stack.pid("watcher"), [part.pid for part in stack.info.services[:3]]
    os.kill(watcher, signal.SIGKILL)
    stack.read_until("watcher")
    assert eventually(lambda: stack.pid("watcher") != watcher)
    assert [part.pid for part in stack.info.services[:3]] == parts


@pytest.mark.slow
def test_a_replaced_watcher_knows_the_parts(start_stack: Start) -> None:
    stack = start_stack()
    os.kill(stack.pid("watcher"), signal.SIGKILL)
    stack.read_until("watcher")
    processes = stack.processes()
    stack.process.kill()
    assert still_running(processes) == []


@pytest.mark.slow
def test_a_killed_guard_is_replaced(start_stack: Start) -> None:
    stack = start_stack()
    guards = _guards(stack)
    guards[0].kill()
    guards[0].wait(10)
    assert eventually(lambda: len(_guards(stack)) == len(guards))


def _guards(stack: Stack) -> list[psutil.Process]:
    return [process for process in stack.processes() if "guard" in _arguments(process)]


def _arguments(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.mark.slow
def test_a_killed_part_is_restarted_without_its_old_children(start_stack: Start) -> None:
    stack = start_stack()
    worker = stack.pid("worker")
    orphans = psutil.Process(worker).children()
    os.kill(worker, signal.SIGKILL)
    assert "killed by SIGKILL" in stack.read_until("worker ")
    stack.read_until("again")
    assert still_running(orphans) == []
    assert stack.pid("worker") != worker
    assert eventually(lambda: stack.info.services[2].restarts == 1)


@pytest.mark.slow
def test_the_pause_before_a_restart_doubles(start_stack: Start) -> None:
    stack = start_stack("web=sleep 0.3")
    pauses = [
        float(stack.read_until("starts again in").rpartition(" in ")[2].split()[0])
        for _ in range(3)
    ]
    assert all(later == pytest.approx(2 * sooner) for sooner, later in pairwise(pauses))


@pytest.mark.slow
def test_an_unhealthy_part_is_restarted(start_stack: Start) -> None:
    stack = start_stack()
    web, unhealthy_file = stack.pid("web"), stack.paths.home / "web.unhealthy"
    unhealthy_file.touch()
    assert "is unhealthy" in stack.read_until("web ")
    unhealthy_file.unlink()
    assert eventually(lambda: stack.pid("web") != web)


@pytest.mark.slow
def test_an_unhealthy_part_that_ignores_its_stop_is_restarted_once(start_stack: Start) -> None:
    stack = start_stack("web=trap '' TERM; while :; do sleep 0.1; done")
    unhealthy_file = stack.paths.home / "web.unhealthy"
    unhealthy_file.touch()
    stack.read_until("is unhealthy")
    unhealthy_file.unlink()
    assert "did not end on SIGTERM" in stack.read_until("web ")
    assert "(again)" in stack.read_until("web ")
    assert stack.info.services[1].restarts == 1


@pytest.mark.slow
def test_a_stop_also_ends_processes_that_ignore_it(start_stack: Start) -> None:
    stack = start_stack("web=trap '' TERM; while :; do sleep 0.1; done")
    processes = stack.processes()
    stack.process.terminate()
    assert stack.process.wait(60) == 0
    assert still_running(processes) == []
    assert stack.info.state == "stopped"


@pytest.mark.slow
def test_the_log_of_a_part_that_does_not_start_is_quoted_and_no_process_remains(
    tmp_path: Path,
) -> None:
    stack = Stack(tmp_path, "web=echo no such module >&2; exit 7")
    output, _ = stack.process.communicate(timeout=20)
    assert stack.process.returncode == 1
    assert "The web service did not start: it ended (exit 7)" in output
    assert "no such module" in output
    assert not is_up(stack.paths)


@pytest.mark.slow
def test_a_home_has_one_supervisor(start_stack: Start) -> None:
    stack = start_stack()
    second = Stack(stack.paths.home)
    assert second.process.wait(20) == 4
    assert second.process.stdout
    second.process.stdout.close()


@pytest.mark.slow
def test_the_home_is_locked_until_every_process_of_a_killed_stack_has_ended(
    start_stack: Start,
) -> None:
    stack = start_stack("worker=trap '' TERM; while :; do sleep 0.1; done")
    processes = stack.processes()
    os.kill(stack.pid("watcher"), signal.SIGKILL)
    stack.process.kill()
    assert is_up(stack.paths)
    assert still_running(processes) == []
    assert not is_up(stack.paths)
