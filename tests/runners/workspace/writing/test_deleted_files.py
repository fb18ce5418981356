"""Snapshots of deleted files: over the limits the oldest are removed; snapshots of existing files
stay."""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from runners.workspace.workspace import ProjectWorkspace
from runners.workspace.writing.deleted_files import DeletedFileLimits, prune_deleted_files
from runners.workspace.writing.file_lock import lock_name, try_lock
from runners.workspace.writing.snapshots import iter_snapshots, list_file_snapshots
from runners.workspace.writing.write_text import write_text
from tests.support.workspace.workspace_calls import workspace_at

DAY = 86_400.0
LARGE_LIMITS = DeletedFileLimits(1000, 1 << 30, 90 * DAY)


@pytest.fixture
def workspace(tmp_path: Path) -> ProjectWorkspace:
    """A workspace with three files that were written three times each, two of them deleted."""
    created = workspace_at(tmp_path)
    for version in "123":
        for name in ("old.txt", "new.txt", "there.txt"):
            write_text(created, name, version * 100)
    for name in ("old.txt", "new.txt"):
        (created.root / name).unlink()
    return created


def prune(workspace: ProjectWorkspace, limits: DeletedFileLimits = LARGE_LIMITS) -> None:
    """Run the hourly cleanup with a clock one hour later."""
    (workspace.state / "deleted").unlink(missing_ok=True)
    prune_deleted_files(workspace.state, limits)


def counts(workspace: ProjectWorkspace) -> list[int]:
    """Return how many snapshots there are of each file."""
    return [
        len(list_file_snapshots(workspace.state, f"{name}.txt")) for name in ("old", "new", "there")
    ]


def age_deletion(workspace: ProjectWorkspace, name: str, seconds: float) -> None:
    """Let a file be recorded as deleted for this long."""
    deletions = json.loads((workspace.state / "deleted.json").read_text())
    deletions[name] -= seconds
    (workspace.state / "deleted.json").write_text(json.dumps(deletions))


def test_below_the_limits_every_snapshot_stays(workspace: ProjectWorkspace) -> None:
    prune(workspace)
    assert counts(workspace) == [3, 3, 3]


def test_over_the_count_the_oldest_snapshots_of_deleted_files_are_removed(
    workspace: ProjectWorkspace,
) -> None:
    before = sorted(
        (snapshot.timestamp, snapshot.id)
        for snapshot in iter_snapshots(workspace.state)
        if snapshot.path != "there.txt"
    )
    prune(workspace, DeletedFileLimits(2, 1 << 30, 90 * DAY))
    remaining = sorted(
        (snapshot.timestamp, snapshot.id)
        for snapshot in iter_snapshots(workspace.state)
        if snapshot.path != "there.txt"
    )
    assert (remaining, counts(workspace)[2]) == (before[-2:], 3)


def test_over_the_bytes_the_oldest_snapshots_are_removed(workspace: ProjectWorkspace) -> None:
    prune(workspace, DeletedFileLimits(1000, 350, 90 * DAY))  # each file: 0, 100 and 100 bytes
    assert counts(workspace) == [1, 2, 3]
    prune(workspace, DeletedFileLimits(1000, 99, 90 * DAY))
    assert counts(workspace) == [0, 0, 3]


def test_all_snapshots_of_a_file_deleted_too_long_ago_are_removed(
    workspace: ProjectWorkspace,
) -> None:
    prune(workspace)
    age_deletion(workspace, "old.txt", 91 * DAY)
    prune(workspace)
    assert counts(workspace) == [0, 3, 3]


def test_the_age_of_a_deletion_counts_from_its_detection(workspace: ProjectWorkspace) -> None:
    for path in (workspace.state / "snapshots").glob("*.meta.json"):
        metadata = json.loads(path.read_text())
        path.write_text(json.dumps(metadata | {"timestamp": 1}))
    prune(workspace)
    assert counts(workspace) == [3, 3, 3]


def test_a_file_that_exists_again_is_no_longer_deleted(workspace: ProjectWorkspace) -> None:
    prune(workspace)
    age_deletion(workspace, "old.txt", 89 * DAY)
    (workspace.root / "old.txt").write_text("back")
    prune(workspace)
    (workspace.root / "old.txt").unlink()
    prune(workspace)
    age_deletion(workspace, "old.txt", 2 * DAY)
    prune(workspace)
    assert counts(workspace) == [3, 3, 3]


def test_with_a_limit_of_zero_no_snapshot_of_deleted_files_stays(
    workspace: ProjectWorkspace,
) -> None:
    prune(workspace, DeletedFileLimits(0, 1 << 30, 90 * DAY))
    assert counts(workspace) == [0, 0, 3]


def test_a_folder_or_link_in_a_files_place_counts_as_existing(workspace: ProjectWorkspace) -> None:
    (workspace.root / "old.txt").symlink_to("/nowhere")
    (workspace.root / "new.txt").mkdir()
    prune(workspace, DeletedFileLimits(0, 0, 0))
    assert counts(workspace) == [3, 3, 3]


@pytest.mark.parametrize("state", ["gone", "empty"])
def test_a_folder_that_is_not_mounted_has_no_deleted_file(
    workspace: ProjectWorkspace, state: str
) -> None:
    shutil.rmtree(workspace.root)
    if state == "empty":
        workspace.root.mkdir()
    prune(workspace, DeletedFileLimits(0, 0, 0))
    assert counts(workspace) == [3, 3, 3]


def test_a_file_that_is_being_written_is_skipped(workspace: ProjectWorkspace) -> None:
    with ExitStack() as stack:
        assert try_lock(workspace.state / "locks" / lock_name("old.txt"), stack)
        prune(workspace, DeletedFileLimits(0, 0, 0))
    assert counts(workspace) == [3, 0, 3]


@pytest.mark.parametrize(
    "deletions",
    ["", "[]", "{broken", '{"old.txt": "yesterday"}', '{"x": 1e99}', '{"x":' * 100_000],
)
def test_a_broken_note_is_started_again(workspace: ProjectWorkspace, deletions: str) -> None:
    (workspace.state / "deleted.json").write_text(deletions)
    prune(workspace)
    assert counts(workspace) == [3, 3, 3]
    assert set(json.loads((workspace.state / "deleted.json").read_text())) == {"old.txt", "new.txt"}


def test_a_clock_that_was_ahead_makes_nothing_expire_early_or_never(
    workspace: ProjectWorkspace,
) -> None:
    prune(workspace)
    age_deletion(workspace, "old.txt", -500 * DAY)
    prune(workspace)
    deletions = json.loads((workspace.state / "deleted.json").read_text())
    assert deletions["old.txt"] <= time.time()


def test_the_cleanup_runs_once_an_hour(workspace: ProjectWorkspace) -> None:
    prune(workspace)
    prune_deleted_files(workspace.state, DeletedFileLimits(0, 0, 0))
    assert counts(workspace) == [3, 3, 3]
    os.utime(workspace.state / "deleted", (0, time.time() - 3601))
    prune_deleted_files(workspace.state, DeletedFileLimits(0, 0, 0))
    assert counts(workspace) == [0, 0, 3]


def test_without_writes_the_cleanup_does_nothing(tmp_path: Path) -> None:
    prune_deleted_files(tmp_path / "absent", LARGE_LIMITS)
    assert not (tmp_path / "absent").exists()
