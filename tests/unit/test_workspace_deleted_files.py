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
from tests.support.workspace_calls import workspace_at

DAY = 86_400.0
MUCH = DeletedFileLimits(1000, 1 << 30, 90 * DAY)


@pytest.fixture
def here(tmp_path: Path) -> ProjectWorkspace:
    """A workspace with three files that were written three times each, two of them deleted."""
    made = workspace_at(tmp_path)
    for turn in "123":
        for name in ("old.txt", "new.txt", "there.txt"):
            write_text(made, name, turn * 100)
    for name in ("old.txt", "new.txt"):
        (made.root / name).unlink()
    return made


def sweep(here: ProjectWorkspace, kept: DeletedFileLimits = MUCH) -> None:
    """Run the hourly cleanup with a clock one hour later."""
    (here.state / "deleted").unlink(missing_ok=True)
    prune_deleted_files(here.state, kept)


def counts(here: ProjectWorkspace) -> list[int]:
    """Return how many snapshots there are of each file."""
    return [len(list_file_snapshots(here.state, f"{name}.txt")) for name in ("old", "new", "there")]


def be_gone_for(here: ProjectWorkspace, name: str, seconds: float) -> None:
    """Let a file be recorded as deleted for this long."""
    noted = json.loads((here.state / "deleted.json").read_text())
    noted[name] -= seconds
    (here.state / "deleted.json").write_text(json.dumps(noted))


def test_below_the_limits_every_snapshot_stays(here: ProjectWorkspace) -> None:
    sweep(here)
    assert counts(here) == [3, 3, 3]


def test_over_the_count_the_oldest_snapshots_of_deleted_files_are_removed(
    here: ProjectWorkspace,
) -> None:
    before = sorted(
        (one.timestamp, one.id) for one in iter_snapshots(here.state) if one.path != "there.txt"
    )
    sweep(here, DeletedFileLimits(2, 1 << 30, 90 * DAY))
    left = sorted(
        (one.timestamp, one.id) for one in iter_snapshots(here.state) if one.path != "there.txt"
    )
    assert (left, counts(here)[2]) == (before[-2:], 3)


def test_over_the_bytes_the_oldest_snapshots_are_removed(here: ProjectWorkspace) -> None:
    sweep(here, DeletedFileLimits(1000, 350, 90 * DAY))  # each file: 0, 100 and 100 bytes
    assert counts(here) == [1, 2, 3]
    sweep(here, DeletedFileLimits(1000, 99, 90 * DAY))
    assert counts(here) == [0, 0, 3]


def test_all_snapshots_of_a_file_deleted_too_long_ago_are_removed(here: ProjectWorkspace) -> None:
    sweep(here)
    be_gone_for(here, "old.txt", 91 * DAY)
    sweep(here)
    assert counts(here) == [0, 3, 3]


def test_the_age_of_a_deletion_counts_from_its_detection(here: ProjectWorkspace) -> None:
    for path in (here.state / "snapshots").glob("*.meta.json"):
        told = json.loads(path.read_text())
        path.write_text(json.dumps(told | {"timestamp": 1}))
    sweep(here)
    assert counts(here) == [3, 3, 3]


def test_a_file_that_exists_again_is_no_longer_deleted(here: ProjectWorkspace) -> None:
    sweep(here)
    be_gone_for(here, "old.txt", 89 * DAY)
    (here.root / "old.txt").write_text("back")
    sweep(here)
    (here.root / "old.txt").unlink()
    sweep(here)
    be_gone_for(here, "old.txt", 2 * DAY)
    sweep(here)
    assert counts(here) == [3, 3, 3]


def test_with_a_limit_of_zero_no_snapshot_of_deleted_files_stays(here: ProjectWorkspace) -> None:
    sweep(here, DeletedFileLimits(0, 1 << 30, 90 * DAY))
    assert counts(here) == [0, 0, 3]


def test_a_folder_or_link_in_a_files_place_counts_as_existing(here: ProjectWorkspace) -> None:
    (here.root / "old.txt").symlink_to("/nowhere")
    (here.root / "new.txt").mkdir()
    sweep(here, DeletedFileLimits(0, 0, 0))
    assert counts(here) == [3, 3, 3]


@pytest.mark.parametrize("how", ["gone", "empty"])
def test_a_folder_that_is_not_mounted_has_no_deleted_file(here: ProjectWorkspace, how: str) -> None:
    shutil.rmtree(here.root)
    if how == "empty":
        here.root.mkdir()
    sweep(here, DeletedFileLimits(0, 0, 0))
    assert counts(here) == [3, 3, 3]


def test_a_file_that_is_being_written_is_skipped(here: ProjectWorkspace) -> None:
    with ExitStack() as closing:
        assert try_lock(here.state / "locks" / lock_name("old.txt"), closing)
        sweep(here, DeletedFileLimits(0, 0, 0))
    assert counts(here) == [3, 0, 3]


@pytest.mark.parametrize("noted", ["", "[]", "{broken", '{"old.txt": "yesterday"}', '{"x": 1e99}'])
def test_a_broken_note_is_started_again(here: ProjectWorkspace, noted: str) -> None:
    (here.state / "deleted.json").write_text(noted)
    sweep(here)
    assert counts(here) == [3, 3, 3]
    assert set(json.loads((here.state / "deleted.json").read_text())) == {"old.txt", "new.txt"}


def test_a_clock_that_was_ahead_makes_nothing_expire_early_or_never(here: ProjectWorkspace) -> None:
    sweep(here)
    be_gone_for(here, "old.txt", -500 * DAY)
    sweep(here)
    noted = json.loads((here.state / "deleted.json").read_text())
    assert noted["old.txt"] <= time.time()


def test_the_cleanup_runs_once_an_hour(here: ProjectWorkspace) -> None:
    sweep(here)
    prune_deleted_files(here.state, DeletedFileLimits(0, 0, 0))
    assert counts(here) == [3, 3, 3]
    os.utime(here.state / "deleted", (0, time.time() - 3601))
    prune_deleted_files(here.state, DeletedFileLimits(0, 0, 0))
    assert counts(here) == [0, 0, 3]


def test_without_writes_the_cleanup_does_nothing(tmp_path: Path) -> None:
    prune_deleted_files(tmp_path / "absent", MUCH)
    assert not (tmp_path / "absent").exists()
