"""What the file system refused, as a caller is told it: without the root's place."""

from __future__ import annotations

import errno
import os
import stat
from typing import Any

from runners.workspace.errors import (
    BadArguments,
    DiskFailed,
    NotThere,
    PathDenied,
    WorkspaceFailed,
    WriteConflict,
)
from runners.workspace.files.paths import shown
from runners.workspace.files.safe_open import LinkOnTheWay

_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ESTALE}


def need_file(told: os.stat_result, path: str) -> None:
    """Let a regular file pass.

    Raises:
        BadArguments: It is a folder.
        PathDenied: It is a link, a pipe, a device or a socket.
    """
    if stat.S_ISDIR(told.st_mode):
        raise BadArguments(f"{shown(path)} is a folder, not a file.", details=about(path))
    if not stat.S_ISREG(told.st_mode):
        raise PathDenied(f"{shown(path)} is no regular file.", details=about(path))


def about(path: str) -> dict[str, Any]:
    """Return the details of a failure that concerns a path."""
    return {"path": shown(path)}


def failure_of(exc: OSError, path: str) -> WorkspaceFailed:
    """Return the failure that says what became of a path."""
    told = about(path)
    if isinstance(exc, LinkOnTheWay):
        return PathDenied(f"{told['path']} leads over a link.", details=told)
    if exc.errno in _GONE:
        return NotThere(f"There is no {told['path']}.", details=told)
    if exc.errno == errno.ENXIO:
        return PathDenied(f"{told['path']} is no regular file.", details=told)
    if exc.errno == errno.ENAMETOOLONG:
        return BadArguments(f"{told['path']} is too long for this file system.", details=told)
    if exc.errno == errno.EEXIST:
        return WriteConflict(f"{told['path']} was made meanwhile.", details=told)
    reason = os.strerror(exc.errno or errno.EIO)
    return DiskFailed(f"{told['path']}: {reason}.", details=told | {"reason": reason})
