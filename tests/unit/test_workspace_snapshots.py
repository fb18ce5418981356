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
from tests.support.workspace_calls import call_tool, files_in, workspace_at

GONE = "snap_20251101T093210_ab12cd34"


@pytest.fixture
def here(tmp_path: Path) -> ProjectWorkspace:
    """A workspace without files."""
    return workspace_at(tmp_path)


def plant(state: Path, snapshot_id: str, *, content: str | None = "x", **meta: Any) -> None:
    """Write a snapshot's files into the state folder."""
    folder = state / "snapshots"
    folder.mkdir(parents=True, exist_ok=True)
    told = {"id": snapshot_id, "path": "a.txt", "timestamp": 1, "contentHash": "2d711642", **meta}
    (folder / f"{snapshot_id}.meta.json").write_text(json.dumps(told))
    if content is not None:
        (folder / f"{snapshot_id}.txt").write_text(content)


def paths(here: ProjectWorkspace, **wish: Any) -> list[str]:
    """Return the paths that list_snapshots returns."""
    return [one["path"] for one in call_tool(here, "list_snapshots", wish)["snapshots"]]


def test_there_are_no_snapshots_before_the_first_write(here: ProjectWorkspace) -> None:
    assert call_tool(here, "list_snapshots", {}) == {"snapshots": []}
    assert not here.state.exists()


def test_snapshots_are_listed_in_the_seeds_format_newest_first(here: ProjectWorkspace) -> None:
    for content in "abc":
        write_text(here, "a.txt", content, idempotency_key=f"k{content}")
    told = call_tool(here, "list_snapshots", {})["snapshots"]
    assert [one["idempotencyKey"] for one in told] == ["kc", "kb", "ka"]
    assert all(SNAPSHOT_ID.fullmatch(one["id"]) for one in told)
    assert [one["timestamp"] for one in told] == sorted({one["timestamp"] for one in told})[::-1]
    assert set(told[0]) == {"id", "path", "timestamp", "contentHash", "idempotencyKey"}
    was = [
        call_tool(here, "restore_snapshot", {"snapshotId": one["id"]})["content"] for one in told
    ]
    assert was == ["b", "a", ""]


def test_a_clock_that_is_set_back_does_not_change_the_order(
    here: ProjectWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(here, "a.txt", "first")
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000 * 10**9)
    write_text(here, "a.txt", "second")
    newest, oldest = list_snapshots(here.state)
    assert read_snapshot(here.state, newest.id)[1] == "first"
    assert newest.timestamp == oldest.timestamp + 1


def test_snapshots_of_the_same_time_are_listed_by_their_ids(here: ProjectWorkspace) -> None:
    ids = [f"snap_20251101T093210_0000000{n}" for n in (3, 1, 2)]
    for one in ids:
        plant(here.state, one)
    told = [one["id"] for one in call_tool(here, "list_snapshots", {})["snapshots"]]
    assert told == sorted(ids, reverse=True)


def test_a_path_filters_by_prefix_before_the_limit_applies(here: ProjectWorkspace) -> None:
    for path in ("game/scene/a.txt", "Game/scene/a.txt", "game/b.txt"):
        write_text(here, path, "x")
    assert paths(here, path="game/") == ["game/b.txt", "game/scene/a.txt"]
    assert paths(here, path="game/scene", limit=1) == ["game/scene/a.txt"]
    assert paths(here, path="../") == []
    assert paths(here, limit=0) == []
    assert len(paths(here, limit=2.7)) == 2


def test_a_file_that_was_forbidden_later_is_neither_listed_nor_returned(tmp_path: Path) -> None:
    here = workspace_at(tmp_path)
    done = write_text(here, "keys/a.txt", "x")
    narrowed = workspace_at(tmp_path, forbidden=("Keys",))
    assert (paths(here), paths(narrowed)) == (["keys/a.txt"], [])
    with pytest.raises(PathDenied):
        call_tool(narrowed, "restore_snapshot", {"snapshotId": done.snapshot_id})


def test_a_negative_limit_means_50(here: ProjectWorkspace) -> None:
    for number in range(60):
        plant(here.state, f"snap_20251101T093210_{number:08x}")
    assert (len(paths(here, limit=-1)), len(paths(here, limit=-0.5))) == (50, 50)
    assert (len(paths(here)), len(paths(here, limit=1000))) == (50, 60)


@pytest.mark.parametrize("limit", [1001, 1000.5, True, None, "5", float("nan"), float("inf")])
def test_other_limits_are_refused(here: ProjectWorkspace, limit: Any) -> None:
    with pytest.raises((ValidationError, BadArguments)):
        call_tool(here, "list_snapshots", {"limit": limit})


def test_the_newest_snapshots_of_each_file_are_kept(tmp_path: Path) -> None:
    here = workspace_at(tmp_path, snapshot_retention=3)
    write_text(here, "other.txt", "x")
    for number in range(6):
        write_text(here, "a.txt", str(number))
    was = [read_snapshot(here.state, one.id)[1] for one in list_snapshots(here.state)]
    assert was == ["4", "3", "2", ""]
    assert len(files_in(here.state / "snapshots")) == 8


def test_without_retention_the_snapshot_of_the_last_write_is_kept(tmp_path: Path) -> None:
    here = workspace_at(tmp_path, snapshot_retention=0)
    for content in "xy":
        done = write_text(here, "a.txt", content)
        assert [one.id for one in list_snapshots(here.state)] == [done.snapshot_id]
    assert read_snapshot(here.state, done.snapshot_id)[1] == "x"


BROKEN: dict[str, dict[str, Any]] = {
    "another id": {"id": GONE[:-1] + "5"},
    "no path": {"path": None},
    "a wrong time": {"timestamp": "yesterday"},
    "a time beyond time": {"timestamp": 1e300},
    "a wrong hash": {"contentHash": "2D711642"},
    "a wrong key": {"idempotencyKey": 5},
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_snapshot_is_not_listed_and_is_reported_when_requested(
    here: ProjectWorkspace, how: str
) -> None:
    plant(here.state, GONE, **BROKEN[how])
    write_text(here, "a.txt", "x")
    assert GONE not in {one.id for one in list_snapshots(here.state)}
    with pytest.raises(ParseFailed):
        call_tool(here, "restore_snapshot", {"snapshotId": GONE})


@pytest.mark.parametrize("meta", ["", "{", "[]", "null", '"x"', "[" * 100_000, "\udcff"])
def test_metadata_that_is_not_an_object_is_broken(here: ProjectWorkspace, meta: str) -> None:
    plant(here.state, GONE)
    path = here.state / "snapshots" / f"{GONE}.meta.json"
    path.write_bytes(meta.encode(errors="surrogateescape"))
    assert list_snapshots(here.state) == []
    with pytest.raises(ParseFailed):
        read_snapshot(here.state, GONE)


@pytest.mark.parametrize("content", [b"y", b"\xff"])
def test_a_changed_content_is_reported(here: ProjectWorkspace, content: bytes) -> None:
    plant(here.state, GONE)
    (here.state / "snapshots" / f"{GONE}.txt").write_bytes(content)
    with pytest.raises(ParseFailed, match="does not match its hash"):
        read_snapshot(here.state, GONE)


def test_an_incomplete_snapshot_is_ignored(here: ProjectWorkspace) -> None:
    plant(here.state, GONE, content=None)
    assert list_snapshots(here.state) == []
    for missing in (GONE, "snap_20251101T093210_00000000"):
        with pytest.raises(PathNotFound) as told:
            call_tool(here, "restore_snapshot", {"snapshotId": missing})
        assert "list_snapshots" in (told.value.hint or "")


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "x",
        GONE.upper(),
        f"../{GONE}",
        f"{GONE}\n",
        f"{GONE}.txt",
        "snap_２０２５1101T093210_ab12cd34",
        GONE.replace("ab12", "AB12"),
    ],
)
def test_an_invalid_id_is_a_wrong_argument(here: ProjectWorkspace, wrong: str) -> None:
    with pytest.raises(BadArguments):
        call_tool(here, "restore_snapshot", {"snapshotId": wrong})


def test_incomplete_snapshots_and_drafts_of_dead_writers_are_removed_later(
    here: ProjectWorkspace,
) -> None:
    plant(here.state, GONE, content=None)
    plant(here.state, "snap_20251101T093210_00000001")
    folder = here.state / "snapshots"
    (folder / "snap_20251101T093210_00000002.txt").write_text("half")
    (folder / ".draft-0123456789abcdef").write_text("draft")
    sweep_state(here.state)
    assert len(files_in(folder)) == 5  # they may belong to a writer that is still running
    for path in [*folder.iterdir(), here.state / "swept"]:
        os.utime(path, (0, time.time() - 3601))
    sweep_state(here.state)
    left = "snap_20251101T093210_00000001"
    assert files_in(folder) == [f"{left}.meta.json", f"{left}.txt"]


def test_snapshots_beyond_the_limit_are_not_read(here: ProjectWorkspace) -> None:
    for number in (1, 2, 3):
        plant(here.state, f"snap_20251101T09321{number}_0000000{number}", timestamp=number)
    oldest = here.state / "snapshots" / "snap_20251101T093211_00000001.meta.json"
    oldest.unlink()
    oldest.mkdir()  # reading it would fail
    assert [one.timestamp for one in list_snapshots(here.state, limit=2)] == [3, 2]
    with pytest.raises(WorkspaceFailed):
        list_snapshots(here.state, limit=3)
