"""Writing a file: with a preview and a snapshot, once per key, never over the changes of another
writer."""

from __future__ import annotations

import json
import os
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from runners.workspace.errors import (
    BadArguments,
    DiskFailed,
    NotText,
    PathDenied,
    PolicyViolation,
    TooLarge,
    ToolDisabled,
    WriteConflict,
)
from runners.workspace.workspace import ProjectWorkspace
from runners.workspace.writing.crash_recovery import PendingWrite
from runners.workspace.writing.file_lock import hold_lock
from runners.workspace.writing.snapshots import list_snapshots, read_snapshot
from runners.workspace.writing.write_text import preview_text, write_text
from tests.support.workspace.workspace_calls import call_tool, files_in, workspace_at

FIELDS = [field.name for field in fields(PendingWrite)]


@pytest.fixture
def workspace(tmp_path: Path) -> ProjectWorkspace:
    """A workspace with one file."""
    created = workspace_at(tmp_path)
    (created.root / "a.txt").write_bytes(b"one\ntwo\r\nthree")
    return created


def write(
    workspace: ProjectWorkspace, content: str, path: str = "a.txt", **more: Any
) -> dict[str, Any]:
    """Preview a write and execute it."""
    call_tool(
        workspace, "write_to_file", {"path": path, "content": content, "dryRun": True, **more}
    )
    return dict(
        call_tool(
            workspace, "write_to_file", {"path": path, "content": content, "dryRun": False, **more}
        )
    )


def test_a_preview_returns_the_diff_and_changes_nothing(workspace: ProjectWorkspace) -> None:
    answer = call_tool(
        workspace, "write_to_file", {"path": "a.txt", "content": "one\n2", "dryRun": True}
    )
    [hunk] = answer["diff"]["hunks"]
    assert answer["applied"] is False
    assert (hunk["linesOld"], hunk["linesNew"]) == (["two\r", "three"], ["2"])
    assert (workspace.root / "a.txt").read_bytes() == b"one\ntwo\r\nthree"
    assert list_snapshots(workspace.state) == []


def test_the_previewed_content_is_written_and_the_old_content_is_kept(
    workspace: ProjectWorkspace,
) -> None:
    result = write(workspace, "海\n")
    snapshot, content = read_snapshot(workspace.state, result["snapshotId"])
    assert (result["applied"], result["bytesWritten"]) == (True, 4)
    assert (workspace.root / "a.txt").read_text() == "海\n"
    assert (snapshot.path, content, snapshot.existed) == ("a.txt", "one\ntwo\r\nthree", True)


def test_a_new_file_and_its_folders_are_created_only_by_the_write(
    workspace: ProjectWorkspace,
) -> None:
    preview_text(workspace, "deep/er/new.txt", "x")
    assert not (workspace.root / "deep").exists()
    result = write(workspace, "x", path="deep/er/new.txt")
    snapshot, content = read_snapshot(workspace.state, result["snapshotId"])
    assert ((workspace.root / "deep/er/new.txt").read_text(), content) == ("x", "")
    assert snapshot.existed is False


def test_append_adds_to_the_end_and_needs_a_new_preview_each_time(
    workspace: ProjectWorkspace,
) -> None:
    write(workspace, "\nfour", mode="append")
    assert (workspace.root / "a.txt").read_bytes() == b"one\ntwo\r\nthree\nfour"
    with pytest.raises(WriteConflict, match="changed since"):
        write_text(workspace, "a.txt", "\nfour", mode="append", require_preview=True)
    write(workspace, "\nfour", mode="append")
    assert (workspace.root / "a.txt").read_bytes().endswith(b"\nfour\nfour")


def test_a_write_without_a_preview_is_refused(workspace: ProjectWorkspace) -> None:
    preview_text(workspace, "a.txt", "x")
    preview_text(workspace, "b.txt", "y")
    other_caller = replace(workspace, principal_id="token:other")
    for caller, path, content, mode in (
        (workspace, "a.txt", "y", "overwrite"),
        (workspace, "c.txt", "x", "overwrite"),
        (workspace, "a.txt", "x", "append"),
        (other_caller, "a.txt", "x", "overwrite"),
    ):
        args = {"path": path, "content": content, "mode": mode, "dryRun": False}
        with pytest.raises(PolicyViolation) as refused:
            call_tool(caller, "write_to_file", args)
        assert "dryRun" in (refused.value.hint or "")
    assert files_in(workspace.root) == ["a.txt"]


def test_a_preview_expires_after_15_minutes(workspace: ProjectWorkspace) -> None:
    preview_text(workspace, "a.txt", "x")
    [preview] = (workspace.state / "previews").iterdir()
    for age_s, refusal in ((14 * 60, None), (15 * 60 + 1, PolicyViolation)):
        os.utime(preview, (0, time.time() - age_s))
        if refusal is None:
            write_text(workspace, "a.txt", "x", require_preview=True)
            (workspace.root / "a.txt").write_bytes(b"one\ntwo\r\nthree")
        else:
            with pytest.raises(refusal):
                write_text(workspace, "a.txt", "x", require_preview=True)


def test_without_the_rule_no_preview_is_needed(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path, write_requires_diff=False)
    result = call_tool(
        workspace, "write_to_file", {"path": "a.txt", "content": "x", "dryRun": False}
    )
    assert result["applied"] is True


@pytest.mark.parametrize("change", ["other content", None])
def test_a_file_that_changed_after_its_preview_is_not_written(
    workspace: ProjectWorkspace, change: str | None
) -> None:
    preview_text(workspace, "a.txt", "x")
    (workspace.root / "a.txt").unlink()
    if change is not None:
        (workspace.root / "a.txt").write_text(change)
    with pytest.raises(WriteConflict, match="changed since"):
        write_text(workspace, "a.txt", "x", require_preview=True)
    assert files_in(workspace.root) == (["a.txt"] if change else [])
    assert list_snapshots(workspace.state) == []


def test_a_key_writes_once_and_then_returns_the_same_answer(workspace: ProjectWorkspace) -> None:
    first = write(workspace, "x", idempotencyKey="k")
    (workspace.root / "a.txt").write_text("of a person")
    repeated = {"path": "./a.txt", "content": "x", "dryRun": False, "idempotencyKey": "k"}
    assert call_tool(workspace, "write_to_file", repeated) == first
    assert (workspace.root / "a.txt").read_text() == "of a person"
    assert [snapshot.idempotency_key for snapshot in list_snapshots(workspace.state)] == ["k"]


def test_a_key_used_for_another_write_is_a_conflict(workspace: ProjectWorkspace) -> None:
    write(workspace, "x", idempotencyKey="k")
    for other in ({"content": "y"}, {"content": "x", "mode": "append"}):
        with pytest.raises(WriteConflict, match="different content"):
            write(workspace, path="a.txt", idempotencyKey="k", **other)
    write(workspace, "y", path="b.txt", idempotencyKey="k")  # a key is valid for one file
    write(
        replace(workspace, principal_id="token:other"), "y", idempotencyKey="k"
    )  # and for one caller
    assert (workspace.root / "a.txt").read_text() == "y"


def test_an_empty_key_is_no_key(workspace: ProjectWorkspace) -> None:
    write(workspace, "x", idempotencyKey="")
    write(workspace, "y", idempotencyKey="")
    assert (workspace.root / "a.txt").read_text() == "y"
    assert {snapshot.idempotency_key for snapshot in list_snapshots(workspace.state)} == {None}


def test_a_key_expires_after_a_day(workspace: ProjectWorkspace) -> None:
    write(workspace, "x", idempotencyKey="k")
    [key_file] = (workspace.state / "keys").iterdir()
    os.utime(key_file, (0, time.time() - 24 * 3600 - 1))
    write(workspace, "y", idempotencyKey="k")
    assert (workspace.root / "a.txt").read_text() == "y"


@pytest.mark.parametrize(
    ("path", "refusal"),
    [
        ("../x.txt", PathDenied),
        ("/etc/x", PathDenied),
        (".git/config", PathDenied),
        (".env", PathDenied),
        ("link/x.txt", PathDenied),
        ("link", PathDenied),
        ("dangling.txt", PathDenied),
        ("twice.txt", PathDenied),
        ("pipe", PathDenied),
        ("continuity.workspace.json", PathDenied),
        ("below/continuity.workspace.json", PathDenied),
        (".", BadArguments),
        ("folder", BadArguments),
        ("folder/", BadArguments),
        ("new/", BadArguments),
        ("a.txt/x", BadArguments),
        ("a\0b", BadArguments),
        ("n" * 256, BadArguments),
    ],
)
@pytest.mark.parametrize("dry", [True, False])
def test_a_forbidden_write_is_not_previewed_either(
    workspace: ProjectWorkspace, path: str, refusal: type[Exception], dry: bool
) -> None:
    (workspace.root / "folder").mkdir()
    (workspace.root / "link").symlink_to("/etc")
    (workspace.root / "dangling.txt").symlink_to("/nowhere/x")
    (workspace.root / "outside").write_text("o")
    (workspace.root / "twice.txt").hardlink_to(workspace.root / "outside")
    os.mkfifo(workspace.root / "pipe")
    with pytest.raises(refusal):
        call_tool(workspace, "write_to_file", {"path": path, "content": "x", "dryRun": dry})
    assert not (workspace.state / "snapshots").exists()


def test_only_text_within_the_size_limit_is_written(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path, max_read_bytes=10)
    (workspace.root / "binary").write_bytes(b"\x89PNG\0")
    (workspace.root / "long").write_bytes(b"x" * 11)
    (workspace.root / "nine").write_bytes(b"x" * 9)
    for path, content, mode, refusal in (
        ("a", "\ud800", "overwrite", NotText),
        ("a", "a\0b", "overwrite", NotText),
        ("binary", "x", "overwrite", NotText),
        ("binary", "x", "append", NotText),
        ("a", "x" * 11, "overwrite", TooLarge),
        ("a", "海" * 4, "overwrite", TooLarge),
        ("long", "x", "overwrite", TooLarge),
        ("nine", "xx", "append", TooLarge),
    ):
        with pytest.raises(refusal):
            write_text(workspace, path, content, mode=mode)
    assert files_in(workspace.root) == ["binary", "long", "nine"]
    assert write_text(workspace, "nine", "x", mode="append").bytes_written == 1


def test_a_write_waits_for_another_writer_and_then_reports_it(workspace: ProjectWorkspace) -> None:
    with (
        hold_lock(workspace.state, "a.txt", wait_s=1),
        pytest.raises(WriteConflict, match="Another call is writing"),
    ):
        write_text(workspace, "a.txt", "x", wait_s=0.05)
    assert write_text(workspace, "a.txt", "x", wait_s=0).bytes_written == 1


def test_a_files_mode_is_kept(workspace: ProjectWorkspace) -> None:
    (workspace.root / "a.txt").chmod(0o640)
    write(workspace, "x")
    assert (workspace.root / "a.txt").stat().st_mode & 0o777 == 0o640


def test_a_failed_state_folder_is_a_disk_error_without_its_path(
    workspace: ProjectWorkspace, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    without_state = replace(workspace, state=tmp_path / "file" / "state")
    for operation in (preview_text, write_text):
        with pytest.raises(DiskFailed) as raised:
            operation(without_state, "a.txt", "x")
        assert str(tmp_path) not in str(raised.value.as_workspace_error())
    assert (workspace.root / "a.txt").read_bytes() == b"one\ntwo\r\nthree"


def test_no_tool_writes_without_a_workspace() -> None:
    for name, args in (
        ("write_to_file", {"path": "a", "content": "x", "dryRun": True}),
        ("replace_in_file", {"path": "a", "find": "x", "replace": "y"}),
        ("list_snapshots", {}),
        ("restore_snapshot", {"snapshotId": "snap_20251101T093210_ab12cd34"}),
    ):
        with pytest.raises(ToolDisabled):
            call_tool(None, name, args)


@pytest.mark.parametrize(
    "note", ["{", "[]", '{"root": 1}', json.dumps({**dict.fromkeys(FIELDS, 1)}), "\x00" * 100]
)
def test_an_unreadable_note_does_not_block_a_write(workspace: ProjectWorkspace, note: str) -> None:
    write_text(workspace, "a.txt", "x")
    [lock] = (workspace.state / "locks").iterdir()
    lock.write_text(note)
    write_text(workspace, "a.txt", "y")
    assert (lock.read_text(), (workspace.root / "a.txt").read_text()) == ("", "y")
