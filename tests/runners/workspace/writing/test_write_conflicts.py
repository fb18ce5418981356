"""Another writer changes the file first: the write is reported as a conflict and never as done."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from runners.workspace.errors import WriteConflict
from runners.workspace.files import atomic_replace
from runners.workspace.workspace import ProjectWorkspace
from runners.workspace.writing import snapshots
from runners.workspace.writing.crash_recovery import PendingWrite, content_digest, finish_or_undo
from runners.workspace.writing.file_lock import lock_name
from runners.workspace.writing.snapshots import list_snapshots
from runners.workspace.writing.write_text import write_text
from tests.support.workspace.workspace_calls import files_in, workspace_at

TEMP_NAME = f".continuity-{'0' * 16}.tmp"


@pytest.fixture
def workspace(tmp_path: Path) -> ProjectWorkspace:
    """A workspace with one file."""
    created = workspace_at(tmp_path)
    (created.root / "a.txt").write_text("old")
    return created


def call_before(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, action: Callable[[], object]
) -> None:
    """Call a function once, just before a write calls another function."""
    original = getattr(module, name)

    def call_once(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(module, name, original)
        action()
        return original(*args, **kwargs)

    monkeypatch.setattr(module, name, call_once)


@pytest.mark.parametrize("other_content", ["third", "much longer than may be read" * 9])
@pytest.mark.parametrize("new_content", ["new", "old"])
def test_a_failed_write_is_not_answered_as_done_under_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_content: str, other_content: str
) -> None:
    workspace = workspace_at(tmp_path, max_read_bytes=100)
    file = workspace.root / "a.txt"
    file.write_text("old")
    call_before(monkeypatch, snapshots, "store_snapshot", lambda: file.write_text(other_content))
    with pytest.raises(WriteConflict):
        write_text(workspace, "a.txt", new_content, idempotency_key="k")
    assert (list_snapshots(workspace.state), files_in(workspace.state / "keys")) == ([], [])
    file.write_text("old")
    result = write_text(workspace, "a.txt", new_content, idempotency_key="k")
    assert (file.read_text(), result.snapshot_id) == (
        new_content,
        list_snapshots(workspace.state)[0].id,
    )


@pytest.mark.parametrize(
    ("has_temp_file", "content", "is_recorded"),
    [(True, "third", False), (True, "new", True), (False, "third", True), (False, "old", False)],
)
def test_the_note_of_a_dead_writer_shows_whether_it_wrote(
    workspace: ProjectWorkspace, has_temp_file: bool, content: str, is_recorded: bool
) -> None:
    result = write_text(workspace, "a.txt", "new", idempotency_key="k")
    [key] = files_in(workspace.state / "keys")
    (workspace.root / "a.txt").write_text(content)
    if has_temp_file:
        (workspace.root / TEMP_NAME).write_text("new")
    pending = PendingWrite(
        str(workspace.root),
        "a.txt",
        content_digest(b"old"),
        content_digest(b"new"),
        100,
        result.snapshot_id,
        key,
        TEMP_NAME,
    )
    finish_or_undo(workspace.state, pending)
    assert files_in(workspace.state / "keys") == ([key] if is_recorded else [])
    assert bool(list_snapshots(workspace.state)) is is_recorded
    assert files_in(workspace.root) == ["a.txt"]


def test_a_file_that_another_writes_during_the_write_stays(
    workspace: ProjectWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, new_content in (("a.txt", "theirs"), ("new.txt", "theirs, and new")):
        file = workspace.root / name
        call_before(
            monkeypatch, atomic_replace, "_write_all", partial(file.write_text, new_content)
        )
        with pytest.raises(WriteConflict, match="meanwhile"):
            write_text(workspace, name, "ours", idempotency_key="k")
        assert file.read_text() == new_content
    assert (files_in(workspace.root), list_snapshots(workspace.state)) == (["a.txt", "new.txt"], [])


def test_a_new_file_does_not_replace_one_created_at_the_last_moment(
    workspace: ProjectWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = workspace.root / "new.txt"
    call_before(monkeypatch, atomic_replace, "_put", partial(file.write_text, "theirs"))
    with pytest.raises(WriteConflict, match="created meanwhile"):
        write_text(workspace, "new.txt", "ours")
    assert (file.read_text(), files_in(workspace.root)) == ("theirs", ["a.txt", "new.txt"])


def test_a_new_file_is_written_also_without_hard_links(
    workspace: ProjectWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "no second names here")

    monkeypatch.setattr(os, "link", refuse)
    write_text(workspace, "new.txt", "ours")
    assert ((workspace.root / "new.txt").read_text(), len(files_in(workspace.root))) == ("ours", 2)
    assert (workspace.root / "new.txt").stat().st_nlink == 1


def test_the_note_of_a_write_is_on_disk_before_the_snapshot(
    workspace: ProjectWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    at_snapshot: list[list[str]] = []
    fsync = os.fsync

    def record_path(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        synced.append(f"{path.name} {path.stat().st_size > 0}")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", record_path)
    call_before(monkeypatch, snapshots, "store_snapshot", lambda: at_snapshot.append(synced.copy()))
    write_text(workspace, "a.txt", "new", idempotency_key="k")
    assert at_snapshot == [["locks True", f"{lock_name('a.txt')} True"]]


def test_the_new_content_is_on_disk_before_it_replaces_the_old(
    workspace: ProjectWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bytes] = []
    at_replacement: list[list[bytes]] = []
    fsync = os.fsync

    def record_content(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        if path.parent == workspace.root:
            synced.append(path.read_bytes())
        fsync(fd)

    monkeypatch.setattr(os, "fsync", record_content)
    call_before(monkeypatch, atomic_replace, "_put", lambda: at_replacement.append(synced.copy()))
    write_text(workspace, "a.txt", "new")
    assert at_replacement == [[b"new"]]
