"""Snapshots: listed newest first, limited per file, read back unchanged; broken ones are
reported."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from runners.workspace.errors import (
    BadArguments,
    ParseFailed,
    PathDenied,
    PathNotFound,
    WorkspaceFailed,
)
from runners.workspace.workspace import ProjectWorkspace
from runners.workspace.writing.crash_recovery import sweep_state
from runners.workspace.writing.snapshots import SNAPSHOT_ID, list_snapshots, read_snapshot
from runners.workspace.writing.write_text import write_text
from tests.support.workspace.workspace_calls import call_tool, files_in, workspace_at

SNAPSHOT = "snap_20251101T093210_ab12cd34"


@pytest.fixture
def workspace(tmp_path: Path) -> ProjectWorkspace:
    """A workspace without files."""
    return workspace_at(tmp_path)


def write_snapshot_files(
    state: Path, snapshot_id: str, *, content: str | None = "x", **metadata: Any
) -> None:
    """Write a snapshot's files into the state folder."""
    folder = state / "snapshots"
    folder.mkdir(parents=True, exist_ok=True)
    listed = {
        "id": snapshot_id,
        "path": "a.txt",
        "timestamp": 1,
        "contentHash": "2d711642",
        **metadata,
    }
    (folder / f"{snapshot_id}.meta.json").write_text(json.dumps(listed))
    if content is not None:
        (folder / f"{snapshot_id}.txt").write_text(content)


def listed_paths(workspace: ProjectWorkspace, **filters: Any) -> list[str]:
    """Return the paths that list_snapshots returns."""
    return [
        snapshot["path"]
        for snapshot in call_tool(workspace, "list_snapshots", filters)["snapshots"]
    ]


def test_there_are_no_snapshots_before_the_first_write(workspace: ProjectWorkspace) -> None:
    assert call_tool(workspace, "list_snapshots", {}) == {"snapshots": []}
    assert not workspace.state.exists()


def test_snapshots_are_listed_in_the_seeds_format_newest_first(workspace: ProjectWorkspace) -> None:
    for content in "abc":
        write_text(workspace, "a.txt", content, idempotency_key=f"k{content}")
    listed = call_tool(workspace, "list_snapshots", {})["snapshots"]
    assert [snapshot["idempotencyKey"] for snapshot in listed] == ["kc", "kb", "ka"]
    assert all(SNAPSHOT_ID.fullmatch(snapshot["id"]) for snapshot in listed)
    assert [snapshot["timestamp"] for snapshot in listed] == sorted(
        {snapshot["timestamp"] for snapshot in listed}
    )[::-1]
    assert set(listed[0]) == {"id", "path", "timestamp", "contentHash", "idempotencyKey"}
    contents = [
        call_tool(workspace, "restore_snapshot", {"snapshotId": snapshot["id"]})["content"]
        for snapshot in listed
    ]
    assert contents == ["b", "a", ""]


def test_a_clock_that_is_set_back_does_not_change_the_order(
    workspace: ProjectWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(workspace, "a.txt", "first")
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000 * 10**9)
    write_text(workspace, "a.txt", "second")
    newest, oldest = list_snapshots(workspace.state)
    assert read_snapshot(workspace.state, newest.id)[1] == "first"
    assert newest.timestamp == oldest.timestamp + 1


def test_snapshots_of_the_same_time_are_listed_by_their_ids(workspace: ProjectWorkspace) -> None:
    ids = [f"snap_20251101T093210_0000000{n}" for n in (3, 1, 2)]
    for snapshot in ids:
        write_snapshot_files(workspace.state, snapshot)
    listed = [
        snapshot["id"] for snapshot in call_tool(workspace, "list_snapshots", {})["snapshots"]
    ]
    assert listed == sorted(ids, reverse=True)


def test_a_path_filters_by_prefix_before_the_limit_applies(workspace: ProjectWorkspace) -> None:
    for path in ("game/scene/a.txt", "Game/scene/a.txt", "game/b.txt"):
        write_text(workspace, path, "x")
    assert listed_paths(workspace, path="game/") == ["game/b.txt", "game/scene/a.txt"]
    assert listed_paths(workspace, path="game/scene", limit=1) == ["game/scene/a.txt"]
    assert listed_paths(workspace, path="../") == []
    assert listed_paths(workspace, limit=0) == []
    assert len(listed_paths(workspace, limit=2.7)) == 2


def test_a_file_that_was_forbidden_later_is_neither_listed_nor_returned(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path)
    result = write_text(workspace, "keys/a.txt", "x")
    restricted = workspace_at(tmp_path, forbidden=("Keys",))
    assert (listed_paths(workspace), listed_paths(restricted)) == (["keys/a.txt"], [])
    with pytest.raises(PathDenied):
        call_tool(restricted, "restore_snapshot", {"snapshotId": result.snapshot_id})


def test_a_negative_limit_means_50(workspace: ProjectWorkspace) -> None:
    for number in range(60):
        write_snapshot_files(workspace.state, f"snap_20251101T093210_{number:08x}")
    assert (len(listed_paths(workspace, limit=-1)), len(listed_paths(workspace, limit=-0.5))) == (
        50,
        50,
    )
    assert (len(listed_paths(workspace)), len(listed_paths(workspace, limit=1000))) == (50, 60)


@pytest.mark.parametrize("limit", [1001, 1000.5, True, None, "5", float("nan"), float("inf")])
def test_other_limits_are_refused(workspace: ProjectWorkspace, limit: Any) -> None:
    with pytest.raises((ValidationError, BadArguments)):
        call_tool(workspace, "list_snapshots", {"limit": limit})


def test_the_newest_snapshots_of_each_file_are_kept(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path, snapshot_retention=3)
    write_text(workspace, "other.txt", "x")
    for number in range(6):
        write_text(workspace, "a.txt", str(number))
    contents = [
        read_snapshot(workspace.state, snapshot.id)[1]
        for snapshot in list_snapshots(workspace.state)
    ]
    assert contents == ["4", "3", "2", ""]
    assert len(files_in(workspace.state / "snapshots")) == 8


def test_without_retention_the_snapshot_of_the_last_write_is_kept(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path, snapshot_retention=0)
    for content in "xy":
        result = write_text(workspace, "a.txt", content)
        assert [snapshot.id for snapshot in list_snapshots(workspace.state)] == [result.snapshot_id]
    assert read_snapshot(workspace.state, result.snapshot_id)[1] == "x"


BROKEN_METADATA: dict[str, dict[str, Any]] = {
    "another id": {"id": SNAPSHOT[:-1] + "5"},
    "no path": {"path": None},
    "a wrong time": {"timestamp": "yesterday"},
    "a time beyond time": {"timestamp": 1e300},
    "a wrong hash": {"contentHash": "2D711642"},
    "a wrong key": {"idempotencyKey": 5},
}


@pytest.mark.parametrize("case", BROKEN_METADATA)
def test_a_broken_snapshot_is_not_listed_and_is_reported_when_requested(
    workspace: ProjectWorkspace, case: str
) -> None:
    write_snapshot_files(workspace.state, SNAPSHOT, **BROKEN_METADATA[case])
    write_text(workspace, "a.txt", "x")
    assert SNAPSHOT not in {snapshot.id for snapshot in list_snapshots(workspace.state)}
    with pytest.raises(ParseFailed):
        call_tool(workspace, "restore_snapshot", {"snapshotId": SNAPSHOT})


@pytest.mark.parametrize("metadata", ["", "{", "[]", "null", '"x"', "[" * 100_000, "\udcff"])
def test_metadata_that_is_not_an_object_is_broken(
    workspace: ProjectWorkspace, metadata: str
) -> None:
    write_snapshot_files(workspace.state, SNAPSHOT)
    path = workspace.state / "snapshots" / f"{SNAPSHOT}.meta.json"
    path.write_bytes(metadata.encode(errors="surrogateescape"))
    assert list_snapshots(workspace.state) == []
    with pytest.raises(ParseFailed):
        read_snapshot(workspace.state, SNAPSHOT)


@pytest.mark.parametrize("content", [b"y", b"\xff"])
def test_a_changed_content_is_reported(workspace: ProjectWorkspace, content: bytes) -> None:
    write_snapshot_files(workspace.state, SNAPSHOT)
    (workspace.state / "snapshots" / f"{SNAPSHOT}.txt").write_bytes(content)
    with pytest.raises(ParseFailed, match="does not match its hash"):
        read_snapshot(workspace.state, SNAPSHOT)


def test_an_incomplete_snapshot_is_ignored(workspace: ProjectWorkspace) -> None:
    write_snapshot_files(workspace.state, SNAPSHOT, content=None)
    assert list_snapshots(workspace.state) == []
    for missing in (SNAPSHOT, "snap_20251101T093210_00000000"):
        with pytest.raises(PathNotFound) as listed:
            call_tool(workspace, "restore_snapshot", {"snapshotId": missing})
        assert "list_snapshots" in (listed.value.hint or "")


@pytest.mark.parametrize(
    "invalid_id",
    [
        "",
        "x",
        SNAPSHOT.upper(),
        f"../{SNAPSHOT}",
        f"{SNAPSHOT}\n",
        f"{SNAPSHOT}.txt",
        "snap_２０２５1101T093210_ab12cd34",
        SNAPSHOT.replace("ab12", "AB12"),
    ],
)
def test_an_invalid_id_is_a_wrong_argument(workspace: ProjectWorkspace, invalid_id: str) -> None:
    with pytest.raises(BadArguments):
        call_tool(workspace, "restore_snapshot", {"snapshotId": invalid_id})


def test_incomplete_snapshots_and_drafts_of_dead_writers_are_removed_later(
    workspace: ProjectWorkspace,
) -> None:
    write_snapshot_files(workspace.state, SNAPSHOT, content=None)
    write_snapshot_files(workspace.state, "snap_20251101T093210_00000001")
    folder = workspace.state / "snapshots"
    (folder / "snap_20251101T093210_00000002.txt").write_text("half")
    (folder / ".draft-0123456789abcdef").write_text("draft")
    sweep_state(workspace.state)
    assert len(files_in(folder)) == 5  # they may belong to a writer that is still running
    for path in [*folder.iterdir(), workspace.state / "swept"]:
        os.utime(path, (0, time.time() - 3601))
    sweep_state(workspace.state)
    remaining = "snap_20251101T093210_00000001"
    assert files_in(folder) == [f"{remaining}.meta.json", f"{remaining}.txt"]


def test_snapshots_beyond_the_limit_are_not_read(workspace: ProjectWorkspace) -> None:
    for number in (1, 2, 3):
        write_snapshot_files(
            workspace.state, f"snap_20251101T09321{number}_0000000{number}", timestamp=number
        )
    oldest = workspace.state / "snapshots" / "snap_20251101T093211_00000001.meta.json"
    oldest.unlink()
    oldest.mkdir()  # reading it would fail
    assert [snapshot.timestamp for snapshot in list_snapshots(workspace.state, limit=2)] == [3, 2]
    with pytest.raises(WorkspaceFailed):
        list_snapshots(workspace.state, limit=3)
