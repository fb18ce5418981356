"""A writer is killed at any moment, many write at once, and a disk is full: the file has the old or
the new content, and no temporary file remains."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.workspace.workspace import ProjectWorkspace
from runners.workspace.writing.crash_recovery import sweep_state
from runners.workspace.writing.snapshots import list_snapshots, read_snapshot
from runners.workspace.writing.write_text import preview_text, write_text
from tests.faults.killed_writer import SIZE, content_of, make_workspace
from tests.support.workspace.workspace_calls import files_in

REPOSITORY = Path(__file__).parent.parent.parent
KILLS = 10
CONCURRENT_WRITER = """
import sys
from pathlib import Path
from runners.workspace.errors import WorkspaceFailed
from runners.workspace.writing.write_text import write_text
from tests.faults.killed_writer import make_workspace
workspace = make_workspace(Path(sys.argv[1]), Path(sys.argv[2]))
sys.stdout.write("ready\\n"); sys.stdout.flush(); sys.stdin.readline()
try:
    key = sys.argv[3] or None
    done = write_text(workspace, "a.txt", "new", require_preview=True, idempotency_key=key)
    sys.stdout.write(done.snapshot_id)
except WorkspaceFailed as failed:
    sys.stdout.write(failed.code)
"""
WRITER_WITH_LIMIT = """
import resource, signal, sys
from pathlib import Path
from runners.workspace.errors import WorkspaceFailed
from runners.workspace.writing.write_text import write_text
from tests.faults.killed_writer import make_workspace
if sys.argv[3]:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
workspace = make_workspace(Path(sys.argv[1]), Path(sys.argv[2]))
for path in sys.argv[4:]:
    try:
        write_text(workspace, path, "x" * 200_000, idempotency_key="k")
    except WorkspaceFailed as failed:
        sys.stdout.write(f"{failed.code} {failed.message}\\n")
"""


@pytest.fixture
def workspace(tmp_path: Path) -> ProjectWorkspace:
    """A workspace in a separate folder."""
    (tmp_path / "root").mkdir()
    return make_workspace(tmp_path / "root", tmp_path / "state")


def start_python(*args: str) -> subprocess.Popen[str]:
    """Start one of our Python modules as a process."""
    return subprocess.Popen(
        [sys.executable, *args],
        cwd=REPOSITORY,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def folder_arguments(workspace: ProjectWorkspace) -> tuple[str, str]:
    """Return a workspace's folders as command-line arguments."""
    return str(workspace.root), str(workspace.state)


def count_write_notes(workspace: ProjectWorkspace) -> int:
    """Return how many write notes (records of unfinished writes) exist."""
    return sum(path.stat().st_size > 0 for path in (workspace.state / "locks").iterdir())


def assert_whole(workspace: ProjectWorkspace) -> None:
    """Assert that the file and every snapshot are complete and that no other file remains."""
    sweep_state(workspace.state)
    text = (workspace.root / "deep/a.txt").read_text()
    assert text == text[:1] * SIZE
    assert files_in(workspace.root) == ["deep/a.txt"]
    for snapshot in list_snapshots(workspace.state):
        content = read_snapshot(workspace.state, snapshot.id)[1]
        assert content in ("", content[:1] * SIZE)
    assert count_write_notes(workspace) == 0


@pytest.mark.slow
def test_a_writer_killed_at_any_moment_leaves_the_old_or_the_new_file(
    workspace: ProjectWorkspace,
) -> None:
    generator, interrupted = random.Random(5), 0
    for _ in range(KILLS):
        writer = start_python("-m", "tests.faults.killed_writer", *folder_arguments(workspace))
        assert writer.stdout is not None
        assert writer.stdout.read(1) == "."
        time.sleep(generator.random() * 0.05)
        writer.kill()
        writer.communicate()
        interrupted += count_write_notes(workspace)
        assert_whole(workspace)
        before = (workspace.root / "deep/a.txt").read_text()
        preview_text(workspace, "deep/a.txt", content_of(0))
        done = write_text(workspace, "deep/a.txt", content_of(0), require_preview=True)
        assert read_snapshot(workspace.state, done.snapshot_id)[1] == before
    assert interrupted, "no kill came in the middle of a write"
    for path in (workspace.state / "snapshots").iterdir():  # an hour later
        os.utime(path, (0, time.time() - 3700))
    os.utime(workspace.state / "swept", (0, 0))
    sweep_state(workspace.state)
    assert (
        len(files_in(workspace.state / "snapshots"))
        == 2 * len(list_snapshots(workspace.state))
        == 6
    )


@pytest.mark.parametrize("key", ["", "k"])
def test_of_two_identical_concurrent_writes_one_is_executed(
    workspace: ProjectWorkspace, key: str
) -> None:
    (workspace.root / "a.txt").write_text("old")
    preview_text(workspace, "a.txt", "new")
    writers = [
        start_python("-c", CONCURRENT_WRITER, *folder_arguments(workspace), key) for _ in range(4)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    answers = [writer.communicate(timeout=60)[0] for writer in writers]
    [snapshot] = list_snapshots(workspace.state)
    others = [snapshot.id] * 3 if key else ["E_CONFLICT"] * 3
    assert sorted(answers) == sorted([snapshot.id, *others])
    assert (workspace.root / "a.txt").read_text() == "new"


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Mount a file system of 256 KiB there if this process may; return whether it is mounted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    is_mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True).returncode == 0
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize(
    ("full", "paths"), [("root", ["new/b.txt", "a.txt"]), ("state", ["a.txt"])]
)
def test_on_a_full_disk_the_file_stays_and_the_failed_write_leaves_nothing(
    tmp_path: Path, full: str, paths: list[str]
) -> None:
    with small_disk(tmp_path / "small") as is_mounted:
        folders = {"root": tmp_path / "root", "state": tmp_path / "state"}
        folders[full] = tmp_path / "small" / full
        for folder in folders.values():
            folder.mkdir()
        workspace = make_workspace(folders["root"], folders["state"])
        old = "o" * 180_000
        (workspace.root / "a.txt").write_text(old)
        if full == "state":  # room for the write's notes, but not for a snapshot
            (workspace.state / "filler").write_bytes(b"f" * 200_000)
        limit = "" if is_mounted else "100000"  # bytes a file, if it cannot mount a disk
        writer = start_python("-c", WRITER_WITH_LIMIT, *folder_arguments(workspace), limit, *paths)
        output, errors = writer.communicate(timeout=60)
        assert errors == ""
        assert [line[:5] for line in output.splitlines()] == ["E_IO "] * len(paths)
        assert str(tmp_path) not in output
        assert (workspace.root / "a.txt").read_text() == old
        assert [path.name for path in workspace.root.iterdir()] == ["a.txt"]
        assert list_snapshots(workspace.state) == []
        assert not any(files_in(workspace.state / name) for name in ("snapshots", "keys"))
