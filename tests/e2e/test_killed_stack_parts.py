"""Kill parts of the real stack while a browser works: no process is left, no run is lost."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from runs.operations.home.state import is_up
from tests.support.installation.temporary_home import (
    TemporaryHome,
    http_status,
    still_running,
    temporary_home,
)
from tests.support.runs.waiting import eventually


@pytest.fixture
def home(tmp_path: Path) -> Iterator[TemporaryHome]:
    with temporary_home(tmp_path / "home") as created:
        yield created


def _temp_folder_of(pid: int) -> Path:
    return Path(psutil.Process(pid).environ()["TMPDIR"])


@pytest.mark.slow
@pytest.mark.parametrize("killed", [["supervisor"], ["supervisor", "watcher"]], ids="+".join)
def test_a_stack_killed_with_open_pages_leaves_nothing(
    home: TemporaryHome, killed: list[str]
) -> None:
    up = home.start("up", "--demo", "--once")
    up.wait_for_line(" 1/16 ")
    processes, temp_folder = home.processes(), _temp_folder_of(home.pid("worker"))
    assert any("chrom" in process.name() for process in processes)
    for pid in [home.pid(name) for name in killed]:
        os.kill(pid, signal.SIGKILL)
    up.wait()
    assert still_running(processes) == []
    assert not is_up(home.paths)
    assert not temp_folder.parent.exists()


@pytest.mark.slow
def test_the_next_stack_finishes_the_run_of_a_killed_stack(home: TemporaryHome) -> None:
    up = home.start("up", "--demo", "--once")
    run_id = up.wait_for_line("is accepted").split()[0]
    up.process.kill()
    up.wait()
    assert eventually(lambda: not is_up(home.paths))
    home.run("up", "--background")
    assert eventually(lambda: _status_of_run(home, run_id) not in {"queued", "running"}, 60)


def _status_of_run(home: TemporaryHome, run_id: str) -> str:
    with sqlite3.connect(home.paths.home / "continuity.sqlite3", timeout=20) as database:
        found = database.execute("SELECT status FROM runs_run WHERE id = ?", [run_id]).fetchone()
    return str(found[0])


@pytest.mark.slow
def test_a_job_succeeds_although_its_worker_is_killed(home: TemporaryHome) -> None:
    up = home.start("up", "--demo", "--once")
    up.wait_for_line(" 2/16 ")
    worker = psutil.Process(home.pid("worker"))
    processes = [worker, *worker.children(recursive=True)]
    worker.kill()
    assert up.wait(120) == 0, up.output
    assert still_running(processes, within_s=0.5) == []


@pytest.mark.slow
def test_the_address_answers_while_the_web_process_restarts(home: TemporaryHome) -> None:
    up = home.start("up")
    url = up.wait_until_ready()
    os.kill(home.pid("web"), signal.SIGKILL)
    assert http_status(f"{url}/healthz") == 200
    up.stop()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_frozen_worker_is_replaced(home: TemporaryHome) -> None:
    up = home.start("up")
    up.wait_until_ready()
    worker = home.pid("worker")
    os.kill(worker, signal.SIGSTOP)
    assert "sent no heartbeat" in up.wait_for_line("worker ")
    up.wait_for_line("(again)")
    assert home.pid("worker") != worker
    up.stop()
