"""The locks of a home: the system releases a lock when its holder ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runs.operations.home.locks import is_held, locked, member_pids, membership, try_lock
from runs.operations.home.paths import HomePaths


def test_a_lock_has_one_holder(tmp_path: Path) -> None:
    fd = try_lock(tmp_path / "lock")
    assert fd is not None
    assert try_lock(tmp_path / "lock") is None
    os.close(fd)


def test_a_released_lock_can_be_acquired_again(tmp_path: Path) -> None:
    os.close(try_lock(tmp_path / "lock") or -1)
    fd = try_lock(tmp_path / "lock")
    assert fd is not None
    os.close(fd)


def test_a_lock_is_held_as_long_as_a_process_that_inherited_it(tmp_path: Path) -> None:
    fd = try_lock(tmp_path / "lock")
    assert fd is not None
    inheritor = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[fd])
    os.close(fd)
    assert is_held(tmp_path / "lock")
    inheritor.communicate()
    assert not is_held(tmp_path / "lock")


def test_a_missing_lock_file_is_not_locked_and_not_created(tmp_path: Path) -> None:
    assert not is_held(tmp_path / "lock")
    assert not (tmp_path / "lock").exists()


def test_many_processes_are_members_at_once_and_none_can_be_excluded(tmp_path: Path) -> None:
    paths = HomePaths(tmp_path)
    with membership(paths), membership(paths):
        assert try_lock(paths.members_lock) is None
    fd = try_lock(paths.members_lock)
    assert fd is not None
    os.close(fd)


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the system does not list locks")
def test_members_are_listed_by_their_processes(tmp_path: Path) -> None:
    paths = HomePaths(tmp_path)
    with membership(paths):
        assert member_pids(paths.members_lock) == [os.getpid()]
    assert member_pids(paths.members_lock) == []


def test_a_membership_ends_with_a_killed_process(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from runs.operations.home.locks import membership;"
        "from runs.operations.home.paths import HomePaths\n"
        "with membership(HomePaths(Path(sys.argv[1]))): print('in', flush=True); sys.stdin.read()"
    )
    member = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert member.stdout
    assert member.stdout.readline() == b"in\n"
    assert try_lock(HomePaths(tmp_path).members_lock) is None
    member.kill()
    member.communicate()
    fd = try_lock(HomePaths(tmp_path).members_lock)
    assert fd is not None
    os.close(fd)


def test_a_block_waits_for_the_lock(tmp_path: Path) -> None:
    with locked(tmp_path / "lock"):
        assert is_held(tmp_path / "lock")
    assert not is_held(tmp_path / "lock")
