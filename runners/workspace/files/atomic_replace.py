"""Replace a file's content atomically, so that a crash leaves either the old or the new content."""

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
from runners.workspace.files.os_errors import require_regular_file
from runners.workspace.files.paths import TEMPORARY, display_path, path_details
from runners.workspace.files.safe_open import open_below

Expected = bytes | None | EllipsisType
STALE_SECONDS = 3600.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
# Errors of file systems that have no hard links (FAT, some network shares) or forbid them.
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def open_parent(root: int, parts: Sequence[str], *, create: bool) -> Iterator[int]:
    """Yield a descriptor of a folder below the root; with `create`, make missing folders.

    If the block raises, the folders that were created are removed again.
    """
    created: list[tuple[int, str]] = []
    current = os.dup(root)
    try:
        for part in parts:
            try:
                child = open_below(current, [part], _FOLDER)
            except FileNotFoundError:
                if not create:
                    raise
                child = _create_folder(current, part, created)
            os.close(current)
            current = child
        yield current
    except BaseException:
        _remove_folders(created)
        raise
    finally:
        os.close(current)
        for parent, _ in created:
            os.close(parent)


def _create_folder(current: int, part: str, created: list[tuple[int, str]]) -> int:
    """Create a folder, or accept one that another process created; append it to `created`."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, dir_fd=current)
        created.append((os.dup(current), part))
        os.fsync(current)
    return open_below(current, [part], _FOLDER)


def new_temporary_name() -> str:
    """Return a random name for the temporary file that will replace another file."""
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
    """Write a temporary file in the same folder and rename it over the old; see `Sandbox.replace`.

    Args:
        folder: an open folder.
        path: the file's path for error messages.
    """
    old = _check_target(folder, name, path, expect)
    _remove_stale(folder)
    temporary_name = temporary_name or new_temporary_name()
    new = os.open(temporary_name, _CREATE, 0o666 if mode is None else mode, dir_fd=folder)
    try:
        try:
            if old is not None:
                _keep_owner_and_mode(new, old)
            _write_all(new, data)
            os.fsync(new)
        finally:
            os.close(new)
        # Check again: the file may have changed while a large content was written.
        _check_target(folder, name, path, expect)
        _put(folder, temporary_name, name, is_new=expect is None)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary_name, dir_fd=folder)
        raise
    os.fsync(folder)


def _put(folder: int, temporary_name: str, name: str, *, is_new: bool) -> None:
    """Rename the temporary file to `name`; a new file never replaces an existing one.

    Raises:
        FileExistsError: A file of that name was created meanwhile.
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


def _check_target(folder: int, name: str, path: str, expect: Expected) -> os.stat_result | None:
    """Return the existing file's stat, or None; reject a file that must not be replaced."""
    try:
        require_regular_file(os.stat(name, dir_fd=folder, follow_symlinks=False), path)
    except FileNotFoundError:
        if isinstance(expect, bytes):
            raise _conflict(path, "does not exist any more") from None
        return None
    # Opened for writing too, so that a file that its owner made read-only is not replaced.
    fd = open_below(folder, [name], os.O_RDWR | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        info = os.fstat(fd)
        require_regular_file(info, path)
        if info.st_nlink > 1:
            raise PathDenied(
                f"{display_path(path)} has a second name (a hard link).", details=path_details(path)
            )
        if expect is None:
            raise _conflict(path, "was created meanwhile")
        if isinstance(expect, bytes) and file.read(len(expect) + 1) != expect:
            raise _conflict(path, "was changed meanwhile")
    return info


def _conflict(path: str, what: str) -> WriteConflict:
    return WriteConflict(f"{display_path(path)} {what}.", details=path_details(path))


def _keep_owner_and_mode(new: int, old: os.stat_result) -> None:
    info = os.fstat(new)
    if (info.st_uid, info.st_gid) != (old.st_uid, old.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(new, old.st_uid, old.st_gid)
    os.fchmod(new, stat.S_IMODE(old.st_mode))


def _write_all(new: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(new, left) :]


def _remove_stale(folder: int) -> None:
    """Remove old temporary files that a killed process left in the folder."""
    with os.scandir(folder) as entries:
        stale = [entry.name for entry in entries if TEMPORARY.fullmatch(entry.name)]
    for name in stale:
        with contextlib.suppress(OSError):
            info = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if time.time() - info.st_mtime > STALE_SECONDS:
                os.unlink(name, dir_fd=folder)


def _remove_folders(created: Sequence[tuple[int, str]]) -> None:
    for parent, name in reversed(created):
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=parent)
