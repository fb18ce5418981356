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
from tests.support.workspace_calls import call_tool, files_in, workspace_at

FIELDS = [field.name for field in fields(PendingWrite)]


@pytest.fixture
def here(tmp_path: Path) -> ProjectWorkspace:
    """A workspace with one file."""
    made = workspace_at(tmp_path)
    (made.root / "a.txt").write_bytes(b"one\ntwo\r\nthree")
    return made


def write(here: ProjectWorkspace, content: str, path: str = "a.txt", **more: Any) -> dict[str, Any]:
    """Preview a write and execute it."""
    call_tool(here, "write_to_file", {"path": path, "content": content, "dryRun": True, **more})
    return dict(
        call_tool(
            here, "write_to_file", {"path": path, "content": content, "dryRun": False, **more}
        )
    )


def test_a_preview_returns_the_diff_and_changes_nothing(here: ProjectWorkspace) -> None:
    answer = call_tool(
        here, "write_to_file", {"path": "a.txt", "content": "one\n2", "dryRun": True}
    )
    [hunk] = answer["diff"]["hunks"]
    assert answer["applied"] is False
    assert (hunk["linesOld"], hunk["linesNew"]) == (["two\r", "three"], ["2"])
    assert (here.root / "a.txt").read_bytes() == b"one\ntwo\r\nthree"
    assert list_snapshots(here.state) == []


def test_the_previewed_content_is_written_and_the_old_content_is_kept(
    here: ProjectWorkspace,
) -> None:
    done = write(here, "海\n")
    snapshot, content = read_snapshot(here.state, done["snapshotId"])
    assert (done["applied"], done["bytesWritten"]) == (True, 4)
    assert (here.root / "a.txt").read_text() == "海\n"
    assert (snapshot.path, content, snapshot.existed) == ("a.txt", "one\ntwo\r\nthree", True)


def test_a_new_file_and_its_folders_are_created_only_by_the_write(here: ProjectWorkspace) -> None:
    preview_text(here, "deep/er/new.txt", "x")
    assert not (here.root / "deep").exists()
    done = write(here, "x", path="deep/er/new.txt")
    snapshot, content = read_snapshot(here.state, done["snapshotId"])
    assert ((here.root / "deep/er/new.txt").read_text(), content) == ("x", "")
    assert snapshot.existed is False


def test_append_adds_to_the_end_and_needs_a_new_preview_each_time(here: ProjectWorkspace) -> None:
    write(here, "\nfour", mode="append")
    assert (here.root / "a.txt").read_bytes() == b"one\ntwo\r\nthree\nfour"
    with pytest.raises(WriteConflict, match="changed since"):
        write_text(here, "a.txt", "\nfour", mode="append", require_preview=True)
    write(here, "\nfour", mode="append")
    assert (here.root / "a.txt").read_bytes().endswith(b"\nfour\nfour")


def test_a_write_without_a_preview_is_refused(here: ProjectWorkspace) -> None:
    preview_text(here, "a.txt", "x")
    preview_text(here, "b.txt", "y")
    somebody = replace(here, principal_id="token:other")
    for who, path, content, mode in (
        (here, "a.txt", "y", "overwrite"),
        (here, "c.txt", "x", "overwrite"),
        (here, "a.txt", "x", "append"),
        (somebody, "a.txt", "x", "overwrite"),
    ):
        args = {"path": path, "content": content, "mode": mode, "dryRun": False}
        with pytest.raises(PolicyViolation) as refused:
            call_tool(who, "write_to_file", args)
        assert "dryRun" in (refused.value.hint or "")
    assert files_in(here.root) == ["a.txt"]


def test_a_preview_expires_after_15_minutes(here: ProjectWorkspace) -> None:
    preview_text(here, "a.txt", "x")
    [preview] = (here.state / "previews").iterdir()
    for age_s, refusal in ((14 * 60, None), (15 * 60 + 1, PolicyViolation)):
        os.utime(preview, (0, time.time() - age_s))
        if refusal is None:
            write_text(here, "a.txt", "x", require_preview=True)
            (here.root / "a.txt").write_bytes(b"one\ntwo\r\nthree")
        else:
            with pytest.raises(refusal):
                write_text(here, "a.txt", "x", require_preview=True)


def test_without_the_rule_no_preview_is_needed(tmp_path: Path) -> None:
    here = workspace_at(tmp_path, write_requires_diff=False)
    done = call_tool(here, "write_to_file", {"path": "a.txt", "content": "x", "dryRun": False})
    assert done["applied"] is True


@pytest.mark.parametrize("change", ["other content", None])
def test_a_file_that_changed_after_its_preview_is_not_written(
    here: ProjectWorkspace, change: str | None
) -> None:
    preview_text(here, "a.txt", "x")
    (here.root / "a.txt").unlink()
    if change is not None:
        (here.root / "a.txt").write_text(change)
    with pytest.raises(WriteConflict, match="changed since"):
        write_text(here, "a.txt", "x", require_preview=True)
    assert files_in(here.root) == (["a.txt"] if change else [])
    assert list_snapshots(here.state) == []


def test_a_key_writes_once_and_then_returns_the_same_answer(here: ProjectWorkspace) -> None:
    first = write(here, "x", idempotencyKey="k")
    (here.root / "a.txt").write_text("somebody's")
    again = {"path": "./a.txt", "content": "x", "dryRun": False, "idempotencyKey": "k"}
    assert call_tool(here, "write_to_file", again) == first
    assert (here.root / "a.txt").read_text() == "somebody's"
    assert [one.idempotency_key for one in list_snapshots(here.state)] == ["k"]


def test_a_key_used_for_another_write_is_a_conflict(here: ProjectWorkspace) -> None:
    write(here, "x", idempotencyKey="k")
    for other in ({"content": "y"}, {"content": "x", "mode": "append"}):
        with pytest.raises(WriteConflict, match="different content"):
            write(here, path="a.txt", idempotencyKey="k", **other)
    write(here, "y", path="b.txt", idempotencyKey="k")  # a key is valid for one file
    write(replace(here, principal_id="token:other"), "y", idempotencyKey="k")  # and for one caller
    assert (here.root / "a.txt").read_text() == "y"


def test_an_empty_key_is_no_key(here: ProjectWorkspace) -> None:
    write(here, "x", idempotencyKey="")
    write(here, "y", idempotencyKey="")
    assert (here.root / "a.txt").read_text() == "y"
    assert {one.idempotency_key for one in list_snapshots(here.state)} == {None}


def test_a_key_expires_after_a_day(here: ProjectWorkspace) -> None:
    write(here, "x", idempotencyKey="k")
    [kept] = (here.state / "keys").iterdir()
    os.utime(kept, (0, time.time() - 24 * 3600 - 1))
    write(here, "y", idempotencyKey="k")
    assert (here.root / "a.txt").read_text() == "y"


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
    here: ProjectWorkspace, path: str, refusal: type[Exception], dry: bool
) -> None:
    (here.root / "folder").mkdir()
    (here.root / "link").symlink_to("/etc")
    (here.root / "dangling.txt").symlink_to("/nowhere/x")
    (here.root / "outside").write_text("o")
    (here.root / "twice.txt").hardlink_to(here.root / "outside")
    os.mkfifo(here.root / "pipe")
    with pytest.raises(refusal):
        call_tool(here, "write_to_file", {"path": path, "content": "x", "dryRun": dry})
    assert not (here.state / "snapshots").exists()


def test_only_text_within_the_size_limit_is_written(tmp_path: Path) -> None:
    here = workspace_at(tmp_path, max_read_bytes=10)
    (here.root / "binary").write_bytes(b"\x89PNG\0")
    (here.root / "long").write_bytes(b"x" * 11)
    (here.root / "nine").write_bytes(b"x" * 9)
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
            write_text(here, path, content, mode=mode)
    assert files_in(here.root) == ["binary", "long", "nine"]
    assert write_text(here, "nine", "x", mode="append").bytes_written == 1


def test_a_write_waits_for_another_writer_and_then_reports_it(here: ProjectWorkspace) -> None:
    with (
        hold_lock(here.state, "a.txt", wait_s=1),
        pytest.raises(WriteConflict, match="Another call is writing"),
    ):
        write_text(here, "a.txt", "x", wait_s=0.05)
    assert write_text(here, "a.txt", "x", wait_s=0).bytes_written == 1


def test_a_files_mode_is_kept(here: ProjectWorkspace) -> None:
    (here.root / "a.txt").chmod(0o640)
    write(here, "x")
    assert (here.root / "a.txt").stat().st_mode & 0o777 == 0o640


def test_a_failed_state_folder_is_a_disk_error_without_its_path(
    here: ProjectWorkspace, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    broken = replace(here, state=tmp_path / "file" / "state")
    for act in (preview_text, write_text):
        with pytest.raises(DiskFailed) as failed:
            act(broken, "a.txt", "x")
        assert str(tmp_path) not in str(failed.value.as_workspace_error())
    assert (here.root / "a.txt").read_bytes() == b"one\ntwo\r\nthree"


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
def test_an_unreadable_note_does_not_block_a_write(here: ProjectWorkspace, note: str) -> None:
    write_text(here, "a.txt", "x")
    [lock] = (here.state / "locks").iterdir()
    lock.write_text(note)
    write_text(here, "a.txt", "y")
    assert (lock.read_text(), (here.root / "a.txt").read_text()) == ("", "y")
