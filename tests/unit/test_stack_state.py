"""What stack.json says is believed only as far as the lock and the process bear it out."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from runs.installation.home.locks import try_lock
from runs.installation.home.paths import HomePaths
from runs.installation.home.state import (
    ServiceInfo,
    StackInfo,
    birth,
    is_up,
    live_info,
    stack_info,
    write_state,
)

INFO = StackInfo(
    state="ready",
    background=True,
    pid=os.getpid(),
    birth=birth(os.getpid()),
    url="http://127.0.0.1:8000",
    started_at=1.5,
    model="m at the openai API",
    services=[ServiceInfo("web", 7, "http://127.0.0.1:8000", "ready", 2)],
)


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    write_state(HomePaths(tmp_path), INFO)
    assert stack_info(HomePaths(tmp_path)) == INFO
    assert (tmp_path / "stack.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"parts": [{}]}', '{"parts": 1}', "\x00"])
def test_a_state_file_that_makes_no_sense_is_no_state(tmp_path: Path, text: str) -> None:
    (tmp_path / "stack.json").write_text(text)
    assert stack_info(HomePaths(tmp_path)) is None


def test_a_state_file_of_before_models_is_read(tmp_path: Path) -> None:
    stored = asdict(INFO)
    stored["parts"] = stored.pop("services")
    del stored["model"]
    (tmp_path / "stack.json").write_text(json.dumps(stored))
    assert stack_info(HomePaths(tmp_path)) == replace(INFO, model=None)


def test_a_ready_stack_is_live_only_under_its_lock(tmp_path: Path) -> None:
    at = HomePaths(tmp_path)
    write_state(at, INFO)
    assert live_info(at) is None
    lock = try_lock(at.stack_lock)
    assert live_info(at) == INFO
    os.close(lock or -1)
    assert not is_up(at)


@pytest.mark.parametrize("state", ["starting", "stopping", "stopped"])
def test_a_stack_that_comes_or_goes_is_not_live(tmp_path: Path, state: str) -> None:
    at = HomePaths(tmp_path)
    lock = try_lock(at.stack_lock)
    write_state(at, replace(INFO, state=state))
    assert live_info(at) is None
    os.close(lock or -1)


def test_a_process_that_only_has_the_number_of_the_supervisor_is_not_it(tmp_path: Path) -> None:
    at = HomePaths(tmp_path)
    lock = try_lock(at.stack_lock)
    write_state(at, replace(INFO, birth="12"))
    assert live_info(at) is None
    os.close(lock or -1)


def test_a_process_that_ended_has_no_birth_not_even_unburied() -> None:
    process = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert birth(process.pid) == ""
    process.communicate()
    assert birth(process.pid) == ""
    assert birth(os.getpid()) != ""
