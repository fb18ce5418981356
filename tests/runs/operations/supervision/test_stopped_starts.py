"""Test that a start of the stack can be ended at any moment, and that each command says so."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.operations.home.errors import StoppedMeanwhile
from runs.operations.home.locks import open_lock, try_lock
from runs.operations.home.paths import HomePaths
from runs.operations.home.state import StackInfo, birth, is_up, stack_info, write_state
from runs.operations.supervision.beginning import await_ready, begin_start
from tests.support.installation.temporary_home import (
    RunningCommand,
    TemporaryHome,
    temporary_home,
)
from tests.support.runs.waiting import eventually


@pytest.fixture
def home(tmp_path: Path) -> Iterator[TemporaryHome]:
    """A home whose database another process migrates for the whole test."""
    with temporary_home(tmp_path / "home") as created:
        created.paths.home.mkdir(mode=0o700)
        lock = open_lock(created.paths.home / "migrate.lock")
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield created
        os.close(lock)


def begun(home: TemporaryHome, *arguments: str) -> RunningCommand:
    """Start the command and wait until it has begun to start the stack."""
    command = home.start("up", *arguments)
    assert eventually(lambda: stack_info(home.paths) is not None)
    assert home.info.state == "starting"
    return command


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        pytest.param(["--background"], 1, marks=pytest.mark.slow, id="background"),
        pytest.param([], 0, marks=pytest.mark.slow, id="foreground"),
    ],
)
def test_down_ends_a_stack_that_is_being_prepared(
    home: TemporaryHome, arguments: list[str], status: int
) -> None:
    up = begun(home, *arguments)
    down = home.run("down")
    assert f"a stack that was starting (process {up.process.pid})" in down.stdout
    assert up.wait() == status
    assert "Stopped before the stack was ready; nothing is left running." in up.output
    assert not is_up(home.paths)
    assert home.run("status").returncode == 3


@pytest.mark.slow
def test_ctrl_c_ends_a_background_start(home: TemporaryHome) -> None:
    up = begun(home, "--background")
    assert up.stop(signal.SIGINT) == 130
    assert "nothing is left running" in up.output
    assert not is_up(home.paths)
    assert stack_info(home.paths) is None


@pytest.mark.slow
def test_down_leaves_a_stack_alone_that_starts_afterwards(
    home: TemporaryHome,
) -> None:
    """Another command takes the lock as soon as the stack that `down` stops has released it."""
    up = begun(home, "--background")
    own = StackInfo("starting", True, os.getpid(), birth(os.getpid()), "", time.time())
    os.kill(up.process.pid, signal.SIGSTOP)
    down = home.start("down")
    assert eventually(lambda: _has_pending(up.process.pid, signal.SIGTERM))
    write_state(home.paths, own)
    assert down.wait() == 0
    assert "Stopped after" in down.output
    os.kill(up.process.pid, signal.SIGCONT)
    assert up.wait() == 1


def _has_pending(pid: int, number: int) -> bool:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("ShdPnd:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def test_a_start_whose_supervisor_was_stopped_is_recorded_as_stopped(tmp_path: Path) -> None:
    """The commands that wait for it read that, and do not start the stack themselves."""
    paths = HomePaths(tmp_path / "home")
    with pytest.raises(StoppedMeanwhile), begin_start(paths, background=True):
        raise StoppedMeanwhile
    info = stack_info(paths)
    assert info is not None
    assert info.state == "stopped"


def test_a_command_that_waits_for_a_start_says_that_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = HomePaths(tmp_path)
    lock = try_lock(paths.stack_lock)
    assert lock is not None
    states = iter(["starting", "stopped"])

    def next_state(_: float) -> None:
        state = next(states)
        write_state(paths, StackInfo(state, True, 1, "1", "", 0.0))
        if state == "stopped":
            os.close(lock)

    monkeypatch.setattr("runs.operations.supervision.beginning.time.sleep", next_state)
    with pytest.raises(StoppedMeanwhile, match=r"stopped with .* while it started"):
        await_ready(paths)
