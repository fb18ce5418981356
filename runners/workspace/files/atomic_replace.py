"""Put a file's new content in place of the old in one step, also when the machine stops midway."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from types import EllipsisType

from runners.workspace.errors import PathDenied, WriteConflict
from runners.workspace.files.os_errors import path_details, require_regular_file
from runners.workspace.files.paths import TEMPORARY, display_path
from runners.workspace.files.safe_open import open_below

Expected = bytes | None | EllipsisType
STALE_SECONDS = 3600.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
# What file systems without second names answer (FAT, some shares), and rules against them.
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def open_parent(root: int, parts: Sequence[str], *, make: bool) -> Iterator[int]:
    """Hold a folder below the root open; make what is missing, and take it away when the block
    fails.
    """
    made: list[tuple[int, str]] = []
    here = os.dup(root)
    try:
        for part in parts:
            try:
                onward = open_below(here, [part], _FOLDER)
            except FileNotFoundError:
                if not make:
                    raise
                onward = _make(here, part, made)
            os.close(here)
            here = onward
        yield here
    except BaseException:
        _take_away(made)
        raise
    finally:
        os.close(here)
        for above, _ in made:
            os.close(above)


def _make(here: int, part: str, made: list[tuple[int, str]]) -> int:
    """Make a folder, unless somebody was first, and open it; note what was made."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, dir_fd=here)
        made.append((os.dup(here), part))
        os.fsync(here)
    return open_below(here, [part], _FOLDER)


def new_temporary_name() -> str:
    """Return a new name for a file that is on its way into another's place."""
    return f".continuity-{secrets.token_hex(8)}.tmp"


def replace_file(
    folder: int,
    name: str,
    data: bytes,
    *,
    path: str,
    expect: Expected,
    mode: int | None,
    temporary_name: str | None = None,
) -> None:
    """Write beside the file and rename over it; see `Sandbox.replace`. Failures name `path`."""
    old = _look(folder, name, path, expect)
    _sweep(folder)
    temporary_name = temporary_name or new_temporary_name()
    new = os.open(temporary_name, _MAKE, 0o666 if mode is None else mode, dir_fd=folder)
    try:
        try:
            if old is not None:
                _keep_owner_and_mode(new, old)
            _write_all(new, data)
            os.fsync(new)
        finally:
            os.close(new)
        # Once more: to write a large file takes a while.
        _look(folder, name, path, expect)
        _put(folder, temporary_name, name, is_new=expect is None)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary_name, dir_fd=folder)
        raise
    os.fsync(folder)


def _put(folder: int, temporary_name: str, name: str, *, is_new: bool) -> None:
    """Give the written file its name; a new one never over what was made meanwhile.

    Raises:
        FileExistsError: It is there already.
    """
    if is_new:
        try:
            os.link(
                temporary_name, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False
            )
        except OSError as exc:
            if exc.errno not in _NO_LINKS:
                raise
        else:
            os.unlink(temporary_name, dir_fd=folder)
            return
    os.rename(temporary_name, name, src_dir_fd=folder, dst_dir_fd=folder)


def _look(folder: int, name: str, path: str, expect: Expected) -> os.stat_result | None:
    """Return the old file's facts, None where there is none; refuse what may not be replaced."""
    try:
        require_regular_file(os.stat(name, dir_fd=folder, follow_symlinks=False), path)
    except FileNotFoundError:
        if isinstance(expect, bytes):
            raise _conflict(path, "is not there any more") from None
        return None
    # Opened for writing as well: a file that its owner made read-only stays as it is.
    found = open_below(folder, [name], os.O_RDWR | os.O_NONBLOCK)
    with os.fdopen(found, "rb") as file:
        told = os.fstat(found)
        require_regular_file(told, path)
        if told.st_nlink > 1:
            raise PathDenied(
                f"{display_path(path)} has a second name (a hard link).", details=path_details(path)
            )
        if expect is None:
            raise _conflict(path, "was made meanwhile")
        if isinstance(expect, bytes) and file.read(len(expect) + 1) != expect:
            raise _conflict(path, "was changed meanwhile")
    return told


def _conflict(path: str, what: str) -> WriteConflict:
    return WriteConflict(f"{display_path(path)} {what}.", details=path_details(path))


def _keep_owner_and_mode(new: int, old: os.stat_result) -> None:
    told = os.fstat(new)
    if (told.st_uid, told.st_gid) != (old.st_uid, old.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(new, old.st_uid, old.st_gid)
    os.fchmod(new, stat.S_IMODE(old.st_mode))


def _write_all(new: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(new, left) :]


def _sweep(folder: int) -> None:
    """Take away what a write that was killed left in the folder."""
    with os.scandir(folder) as found:
        stale = [one.name for one in found if TEMPORARY.fullmatch(one.name)]
    for name in stale:
        with contextlib.suppress(OSError):
            told = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if time.time() - told.st_mtime > STALE_SECONDS:
                os.unlink(name, dir_fd=folder)


def _take_away(made: Sequence[tuple[int, str]]) -> None:
    for above, name in reversed(made):
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=above)
