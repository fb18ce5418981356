"""The content of stack.json counts only if the lock and the process confirm it."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from runs.operations.home.locks import try_lock
from runs.operations.home.paths import HomePaths
from runs.operations.home.state import (
    ServiceInfo,
    StackInfo,
    birth,
    is_up,
    live_info,
    stack_info,
    write_state,
)

INFO = StackInfo(
    state="running",
    background=True,
    pid=os.getpid(),
    birth=birth(os.getpid()),
    url="http://127.0.0.1:8000",
    started_at=1.5,
    model="m at the openai API",
    services=[ServiceInfo("web", 7, "http://127.0.0.1:8000", "running", 2)],
)


def test_a_written_state_is_read_back(tmp_path: Path) -> None:
    write_state(HomePaths(tmp_path), INFO)
    assert stack_info(HomePaths(tmp_path)) == INFO
    assert (tmp_path / "stack.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"parts": [{}]}', '{"parts": 1}', "\x00"])
def test_an_invalid_state_file_is_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / "stack.json").write_text(text)
    assert stack_info(HomePaths(tmp_path)) is None


def test_a_state_file_of_an_older_version_is_read(tmp_path: Path) -> None:
    stored = asdict(INFO)
    stored["parts"] = stored.pop("services")
    del stored["model"]
    (tmp_path / "stack.json").write_text(json.dumps(stored).replace('"running"', '"ready"'))
    assert stack_info(HomePaths(tmp_path)) == replace(INFO, model=None)


def test_a_running_stack_is_live_only_while_its_lock_is_held(tmp_path: Path) -> None:
    paths = HomePaths(tmp_path)
    write_state(paths, INFO)
    assert live_info(paths) is None
    lock = try_lock(paths.stack_lock)
    assert live_info(paths) == INFO
    os.close(lock or -1)
    assert not is_up(paths)


@pytest.mark.parametrize("state", ["starting", "stopping", "stopped"])
def test_a_stack_that_starts_or_stops_is_not_live(tmp_path: Path, state: str) -> None:
    paths = HomePaths(tmp_path)
    lock = try_lock(paths.stack_lock)
    write_state(paths, replace(INFO, state=state))
    assert live_info(paths) is None
    os.close(lock or -1)


def test_another_process_with_the_supervisors_number_is_not_the_supervisor(tmp_path: Path) -> None:
    paths = HomePaths(tmp_path)
    lock = try_lock(paths.stack_lock)
    write_state(paths, replace(INFO, birth="12"))
    assert live_info(paths) is None
    os.close(lock or -1)


def test_an_ended_process_has_no_birth_time_even_before_it_is_reaped() -> None:
    process = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert birth(process.pid) == ""
    process.communicate()
    assert birth(process.pid) == ""
    assert birth(os.getpid()) != ""
