"""The fork server of the fault tests: its children are like processes of their own."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.faults.forked_process import ForkedProcess
from tests.support.runs.waiting import eventually

PROGRAM = "import os, sys; print(os.environ['MARK'], os.getsid(0) == os.getpid()); sys.exit(3)"


def run_program(tmp_path: Path, program: str) -> ForkedProcess:
    env = {**os.environ, "MARK": "own", "DJANGO_SETTINGS_MODULE": "tests.lean_settings"}
    return ForkedProcess(["shell", "--no-imports", "-c", program], env, tmp_path / "log")


def test_a_forked_command_has_a_session_an_environment_and_a_status(tmp_path: Path) -> None:
    assert run_program(tmp_path, PROGRAM).wait(60) == 3
    assert (tmp_path / "log").read_text().split() == ["own", "True"]


def test_a_forked_command_is_ended_by_a_signal(tmp_path: Path) -> None:
    process = run_program(tmp_path, "import time; print('up', flush=True); time.sleep(60)")
    assert eventually(lambda: "up" in (tmp_path / "log").read_text())
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == -signal.SIGTERM
