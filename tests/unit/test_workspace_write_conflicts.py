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
from tests.support.workspace_calls import files_in, workspace_at

BESIDE = f".continuity-{'0' * 16}.tmp"


@pytest.fixture
def here(tmp_path: Path) -> ProjectWorkspace:
    """A workspace with one file."""
    made = workspace_at(tmp_path)
    (made.root / "a.txt").write_text("old")
    return made


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, at: Any, name: str, act: Callable[[], object]
) -> None:
    """Call a function once, just before a write calls another function."""
    called = getattr(at, name)

    def first(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr(at, name, called)
        act()
        return called(*args, **more)

    monkeypatch.setattr(at, name, first)


@pytest.mark.parametrize("third", ["third", "much longer than may be read" * 9])
@pytest.mark.parametrize("becomes", ["new", "old"])
def test_a_failed_write_is_not_answered_as_done_under_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, becomes: str, third: str
) -> None:
    here = workspace_at(tmp_path, max_read_bytes=100)
    file = here.root / "a.txt"
    file.write_text("old")
    meanwhile(monkeypatch, snapshots, "store_snapshot", lambda: file.write_text(third))
    with pytest.raises(WriteConflict):
        write_text(here, "a.txt", becomes, idempotency_key="k")
    assert (list_snapshots(here.state), files_in(here.state / "keys")) == ([], [])
    file.write_text("old")
    done = write_text(here, "a.txt", becomes, idempotency_key="k")
    assert (file.read_text(), done.snapshot_id) == (becomes, list_snapshots(here.state)[0].id)


@pytest.mark.parametrize(
    ("is_beside", "now", "is_kept"),
    [(True, "third", False), (True, "new", True), (False, "third", True), (False, "old", False)],
)
def test_the_note_of_a_dead_writer_shows_whether_it_wrote(
    here: ProjectWorkspace, is_beside: bool, now: str, is_kept: bool
) -> None:
    done = write_text(here, "a.txt", "new", idempotency_key="k")
    [key] = files_in(here.state / "keys")
    (here.root / "a.txt").write_text(now)
    if is_beside:
        (here.root / BESIDE).write_text("new")
    died = PendingWrite(
        str(here.root),
        "a.txt",
        content_digest(b"old"),
        content_digest(b"new"),
        100,
        done.snapshot_id,
        key,
        BESIDE,
    )
    finish_or_undo(here.state, died)
    assert files_in(here.state / "keys") == ([key] if is_kept else [])
    assert bool(list_snapshots(here.state)) is is_kept
    assert files_in(here.root) == ["a.txt"]


def test_a_file_that_another_writes_during_the_write_stays(
    here: ProjectWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, becomes in (("a.txt", "theirs"), ("new.txt", "theirs, and new")):
        file = here.root / name
        meanwhile(monkeypatch, atomic_replace, "_write_all", partial(file.write_text, becomes))
        with pytest.raises(WriteConflict, match="meanwhile"):
            write_text(here, name, "ours", idempotency_key="k")
        assert file.read_text() == becomes
    assert (files_in(here.root), list_snapshots(here.state)) == (["a.txt", "new.txt"], [])


def test_a_new_file_does_not_replace_one_created_at_the_last_moment(
    here: ProjectWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = here.root / "new.txt"
    meanwhile(monkeypatch, atomic_replace, "_put", partial(file.write_text, "theirs"))
    with pytest.raises(WriteConflict, match="created meanwhile"):
        write_text(here, "new.txt", "ours")
    assert (file.read_text(), files_in(here.root)) == ("theirs", ["a.txt", "new.txt"])


def test_a_new_file_is_written_also_without_hard_links(
    here: ProjectWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "no second names here")

    monkeypatch.setattr(os, "link", refuse)
    write_text(here, "new.txt", "ours")
    assert ((here.root / "new.txt").read_text(), len(files_in(here.root))) == ("ours", 2)
    assert (here.root / "new.txt").stat().st_nlink == 1


def test_the_note_of_a_write_is_on_disk_before_the_snapshot(
    here: ProjectWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    at_snapshot: list[list[str]] = []
    fsync = os.fsync

    def noting(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        synced.append(f"{path.name} {path.stat().st_size > 0}")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", noting)
    meanwhile(monkeypatch, snapshots, "store_snapshot", lambda: at_snapshot.append(synced.copy()))
    write_text(here, "a.txt", "new", idempotency_key="k")
    assert at_snapshot == [["locks True", f"{lock_name('a.txt')} True"]]


def test_the_new_content_is_on_disk_before_it_replaces_the_old(
    here: ProjectWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bytes] = []
    at_replacement: list[list[bytes]] = []
    fsync = os.fsync

    def record_content(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        if path.parent == here.root:
            synced.append(path.read_bytes())
        fsync(fd)

    monkeypatch.setattr(os, "fsync", record_content)
    meanwhile(monkeypatch, atomic_replace, "_put", lambda: at_replacement.append(synced.copy()))
    write_text(here, "a.txt", "new")
    assert at_replacement == [[b"new"]]
