"""Stop a start of the stack at 50 moments of it, in each way in which people and hosts do.

No process of the home may be left, and no command may say what is not so.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psutil
import pytest

from runs.operations.home.state import is_up
from tests.support.installation.temporary_home import (
    RunningCommand,
    TemporaryHome,
    temporary_home,
)
from tests.support.runs.waiting import eventually

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

MOMENTS = 50
# Seconds after the command began; on an idle machine a start takes about 2 s.
LATEST_S = 4.0
SENTENCES = {
    0: ("Up in the background", "Up already"),
    1: ("Stopped before the stack was ready", "stopped with `manage.py down` while it started"),
    130: ("Stopped before the stack was ready",),
}


@dataclass
class Attempt:
    """One start that is stopped."""

    home: TemporaryHome
    up: RunningCommand

    def down(self) -> None:
        """Stop it with `manage.py down`; what that found has to agree with what `up` says."""
        found_nothing = "Nothing is up." in self._down()
        status = self.up.wait(60)
        assert any(sentence in self.up.output for sentence in SENTENCES[status]), self.up.output
        if found_nothing:  # it looked before the start had begun, so the start was not stopped
            assert status == 0, self.up.output
            assert "Stopped after" in self._down()

    def _down(self) -> str:
        completed = self.home.run("down")
        assert completed.returncode == 0, completed.stderr
        return completed.stdout

    def interrupt(self) -> None:
        """Press Ctrl-C on `up --background`; a stack that was ready before stays."""
        status = self.up.stop(signal.SIGINT, 60)
        if status == 0:
            assert "Up in the background" in self.up.output
            self._down()
        elif status != -signal.SIGINT:  # not before Python had begun
            assert "nothing is left running" in self.up.output or status == 1, self.up.output

    def interrupt_foreground(self) -> None:
        """Press Ctrl-C on `up`, then look for what is left."""
        assert self.up.stop(signal.SIGINT, 60) in {0, 130, 1, -signal.SIGINT}, self.up.output

    def down_in_foreground(self) -> None:
        """Stop `up` from another terminal."""
        if "Nothing is up." in self._down():
            self.up.wait_until_ready()
            assert "Stopped after" in self._down()
        assert self.up.wait(60) == 0, self.up.output

    def leave(self) -> None:
        """Kill the command, as an agent host that ends kills its children, then stop the stack."""
        self.up.process.kill()
        self.up.process.wait()
        self._down()


@pytest.mark.parametrize(
    ("arguments", "stop"),
    [
        (["--background"], Attempt.down),
        (["--background"], Attempt.interrupt),
        (["--background"], Attempt.leave),
        ([], Attempt.down_in_foreground),
        ([], Attempt.interrupt_foreground),
    ],
    ids=["down", "ctrl-c", "killed-host", "foreground-down", "foreground-ctrl-c"],
)
def test_nothing_is_left_of_a_start_that_is_stopped(
    arguments: list[str], stop: Callable[[Attempt], None], tmp_path: Path
) -> None:
    moments = Random(2026)
    with temporary_home(tmp_path / "home") as home:
        for _ in range(MOMENTS):
            up = home.start("up", *arguments)
            time.sleep(moments.uniform(0, LATEST_S))
            stop(Attempt(home, up))
            assert eventually(lambda: not is_up(home.paths), within_s=20)
            assert eventually(lambda: _processes_of(home) == [], within_s=5), _processes_of(home)
            assert home.run("status").returncode == 3


def _processes_of(home: TemporaryHome) -> list[str]:
    """Return the command lines of all processes whose environment names the home."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("CONTINUITY_HOME") == str(home.paths.home):
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found
