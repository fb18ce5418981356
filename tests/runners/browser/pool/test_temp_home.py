"""The browser's temporary directory and its removal."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from runners.browser.pool.temp_home import PREFIX, BrowserHome, sweep_homes

OWNER = """
from runners.browser.pool.temp_home import BrowserHome
home = BrowserHome()
print(home.path, flush=True)
input()
"""


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def start_owner(base: Path) -> subprocess.Popen[str]:
    env = {**os.environ, "TMPDIR": str(base)}
    return subprocess.Popen(
        [sys.executable, "-c", OWNER],
        env=env,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_removing_a_home_deletes_it_and_may_be_done_twice(base: Path) -> None:
    home = BrowserHome()
    (home.path / "profile").mkdir()
    home.remove()
    home.remove()
    assert list(base.iterdir()) == []


def test_the_home_of_a_running_owner_is_not_removed(base: Path) -> None:
    own, other = BrowserHome(), start_owner(base)
    assert other.stdout is not None
    other_home = Path(other.stdout.readline().strip())
    assert sweep_homes() == 0
    assert own.path.is_dir()
    assert other_home.is_dir()
    kill(other)
    own.remove()


def test_the_home_of_a_killed_owner_is_removed(base: Path) -> None:
    owner = start_owner(base)
    assert owner.stdout is not None
    old_home = Path(owner.stdout.readline().strip())
    kill(owner)
    assert old_home.is_dir()
    assert sweep_homes() == 1
    assert list(base.iterdir()) == []


def test_a_directory_without_a_lock_is_not_removed(base: Path) -> None:
    (base / f"{PREFIX}other").mkdir()
    assert sweep_homes() == 0
    assert (base / f"{PREFIX}other").is_dir()


def test_removing_a_home_kills_the_browser_processes_that_use_it(base: Path) -> None:
    home = BrowserHome()
    hanging = subprocess.Popen(["sh", "-c", "sleep 60; :", f"--user-data-dir={home.path}/profile"])
    bystander = subprocess.Popen(["sleep", "60"], env={**os.environ, "TMPDIR": str(home.path)})
    home.remove()
    assert hanging.wait(5) == -9
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()
