"""Files below a root are read and replaced completely; nothing else is touched."""

from __future__ import annotations

import errno
import os
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.workspace.errors import (
    BadArguments,
    DiskFailed,
    NotText,
    PathDenied,
    PathNotFound,
    TooLarge,
    WriteConflict,
)
from runners.workspace.files import safe_open
from runners.workspace.files.listing import Found
from runners.workspace.files.sandbox import Sandbox, decode_text

LIMIT = 1000


@pytest.fixture(params=["at once", "step by step"])
def sandbox(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Sandbox]:
    """A sandbox on an empty root, on a kernel with openat2 and on a kernel without."""
    if request.param == "step by step":
        monkeypatch.setattr(safe_open, "has_openat2", lambda: False)
    (tmp_path / "root").mkdir()
    with Sandbox(tmp_path / "root", {".git", "node_modules", ".env"}) as sandbox:
        yield sandbox


@pytest.fixture
def root(tmp_path: Path, sandbox: Sandbox) -> Path:
    return tmp_path / "root"


def test_a_file_that_is_not_regular_is_denied_without_blocking(
    sandbox: Sandbox, root: Path
) -> None:
    os.mkfifo(root / "pipe")
    (root / "loop").symlink_to("loop")
    (root / "to_file").symlink_to("file")
    (root / "file").write_text("x")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{sandbox._root}/socket")
    for name in ("pipe", "socket", "loop", "to_file"):
        with pytest.raises(PathDenied):
            sandbox.read(name, limit=LIMIT)
        with pytest.raises(PathDenied):
            sandbox.replace(name, b"x")
        with pytest.raises(PathDenied):
            sandbox.exists(name)
    assert sorted(p.name for p in root.iterdir()) == ["file", "loop", "pipe", "socket", "to_file"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes devices")
def test_a_device_is_denied(sandbox: Sandbox, root: Path) -> None:
    try:
        os.mknod(root / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("no devices can be made here")
    with pytest.raises(PathDenied):
        sandbox.read("zero", limit=LIMIT)
    assert sandbox.find(".") == Found([], [])


def test_checking_a_pipe_does_not_wake_its_reader(sandbox: Sandbox, root: Path) -> None:
    os.mkfifo(root / "pipe")
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", f"echo x > {root}/pipe"], os.environ)
    try:
        with pytest.raises(PathDenied):
            sandbox.read("pipe", limit=LIMIT)
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)  # the pipe still waits for a reader
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def test_a_folder_is_not_a_file_and_a_file_is_not_a_folder(sandbox: Sandbox, root: Path) -> None:
    (root / "folder").mkdir()
    (root / "file").write_text("x")
    for path in ("folder", "file/", ".", "folder/.", "new/"):
        with pytest.raises(BadArguments):
            sandbox.read(path, limit=LIMIT)
        with pytest.raises(BadArguments):
            sandbox.replace(path, b"x")
    with pytest.raises(BadArguments):
        sandbox.list_dir("file")
    with pytest.raises(PathNotFound):
        sandbox.read("file/below", limit=LIMIT)


def test_a_file_at_the_limit_is_read_and_one_byte_more_is_not(sandbox: Sandbox, root: Path) -> None:
    (root / "full").write_bytes(b"x" * LIMIT)
    assert len(sandbox.read("full", limit=LIMIT)) == LIMIT
    with pytest.raises(TooLarge):
        sandbox.read("full", limit=LIMIT - 1)


def test_a_file_with_a_second_hard_link_is_read_but_not_written(
    sandbox: Sandbox, root: Path
) -> None:
    (root.parent / "outside").write_text("outside")
    os.link(root.parent / "outside", root / "inside")
    assert sandbox.read("inside", limit=LIMIT) == b"outside"
    with pytest.raises(PathDenied, match="hard link"):
        sandbox.replace("inside", b"new")
    assert (root.parent / "outside").read_text() == "outside"


def test_a_write_keeps_the_mode_and_a_new_file_gets_the_default_mode(
    sandbox: Sandbox, root: Path
) -> None:
    (root / "run.sh").write_text("old")
    (root / "run.sh").chmod(0o750)
    sandbox.replace("run.sh", b"new")
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o750
    sandbox.replace("plain", b"x")
    (root / "usual").write_text("x")
    assert (root / "plain").stat().st_mode == (root / "usual").stat().st_mode


def test_a_write_whose_expected_content_differs_changes_nothing(
    sandbox: Sandbox, root: Path
) -> None:
    (root / "f").write_bytes(b"now")
    for expected in (None, b"", b"no", b"nowhere", b"now "):
        with pytest.raises(WriteConflict):
            sandbox.replace("f", b"new", expect=expected)
    with pytest.raises(WriteConflict):
        sandbox.replace("gone", b"new", expect=b"")
    assert [p.name for p in root.iterdir()] == ["f"]
    sandbox.replace("f", b"new", expect=b"now")
    sandbox.replace("g/h", b"new", expect=None)
    assert (root / "f").read_bytes() == (root / "g/h").read_bytes() == b"new"


def test_a_full_disk_leaves_the_old_file(
    sandbox: Sandbox, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_bytes(b"old")

    def fail_with_full_disk(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("runners.workspace.files.atomic_replace.os.fsync", fail_with_full_disk)
    for path in ("f", "new/folder/g"):
        with pytest.raises(DiskFailed):
            sandbox.replace(path, b"new")
    assert [p.name for p in root.iterdir()] == ["f"]
    assert (root / "f").read_bytes() == b"old"


def test_the_policy_file_is_read_and_never_written(sandbox: Sandbox, root: Path) -> None:
    (root / "continuity.workspace.json").write_text("{}")
    assert sandbox.read("continuity.workspace.json", limit=LIMIT) == b"{}"
    for path in (
        "continuity.workspace.json",
        "./CONTINUITY.workspace.json",
        "continuity.workspace.json.",
        "below/continuity.workspace.json",  # a folder below may be another target's root
        "be/low/Continuity.Workspace.JSON:x",
    ):
        with pytest.raises(PathDenied):
            sandbox.replace(path, b"x")
    assert [path.name for path in root.iterdir()] == ["continuity.workspace.json"]


def test_leftovers_of_a_killed_write_are_hidden_and_removed_later(
    sandbox: Sandbox, root: Path
) -> None:
    old, recent = (root / f".continuity-{digit * 16}.tmp" for digit in "01")
    old.write_text("x")
    recent.write_text("x")
    long_ago = time.time() - 7200
    os.utime(old, (long_ago, long_ago))
    assert sandbox.find(".") == Found([], [])
    with pytest.raises(PathDenied):
        sandbox.read(recent.name, limit=LIMIT)
    sandbox.replace("f", b"x")
    assert sorted(p.name for p in root.iterdir()) == [recent.name, "f"]


def test_what_is_found_below_a_folder_has_nothing_forbidden(sandbox: Sandbox, root: Path) -> None:
    for name in (
        "b/c/d.txt",
        "b.txt",
        "b-a/x",
        "node_modules/x",
        "B/.ENV.local",
        "B/.git./x",
        "B/y",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    (root / "link").symlink_to("b")
    (root / "b/up").symlink_to("..")
    (root / os.fsdecode(b"bad\xff")).mkdir()
    found = sandbox.find(".")
    assert sorted(found.files) == ["B/y", "b-a/x", "b.txt", "b/c/d.txt"]
    assert sorted(found.folders) == ["B", "b", "b-a", "b/c"]
    assert sandbox.list_dir("b") == [("c", True)]
    with pytest.raises(PathDenied):
        sandbox.list_dir("link")


def test_text_keeps_its_bom_and_line_ends_and_binary_is_not_text() -> None:
    assert decode_text(b"\xef\xbb\xbfa\r\nb\r", "f") == "\ufeffa\r\nb\r"
    for data in (b"\xff\xfea\0", b"a\0b", b"\x89PNG\r\n", b"\xed\xa0\x80"):
        with pytest.raises(NotText):
            decode_text(data, "f")


def test_a_missing_root_is_reported_without_its_path(tmp_path: Path) -> None:
    with pytest.raises(PathNotFound) as caught:
        Sandbox(tmp_path / "gone", ())
    assert str(tmp_path) not in caught.value.message + str(caught.value.details)


def test_every_descriptor_is_closed(sandbox: Sandbox, root: Path) -> None:
    (root / "a").mkdir()
    (root / "link").symlink_to("a")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in ("a/f", "link/f", "a", "a/f/g", "../x"):
        for operation in (
            lambda p: sandbox.replace(p, b"x"),
            lambda p: sandbox.read(p, limit=1),
            sandbox.list_dir,
        ):
            try:
                operation(path)
            except (PathDenied, BadArguments, PathNotFound, DiskFailed):
                continue
    assert len(list(Path("/proc/self/fd").iterdir())) == before
