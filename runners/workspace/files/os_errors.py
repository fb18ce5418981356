"""What the file system refused, as a caller is told it: without the root's place."""

from __future__ import annotations

import errno
import os
import stat
from typing import Any

from runners.workspace.errors import (
    BadArguments,
    DiskFailed,
    PathDenied,
    PathNotFound,
    WorkspaceFailed,
    WriteConflict,
)
from runners.workspace.files.paths import display_path
from runners.workspace.files.safe_open import SymlinkInPath

_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ESTALE}


def require_regular_file(told: os.stat_result, path: str) -> None:
    """Let a regular file pass.

    Raises:
        BadArguments: It is a folder.
        PathDenied: It is a link, a pipe, a device or a socket.
    """
    if stat.S_ISDIR(told.st_mode):
        raise BadArguments(
            f"{display_path(path)} is a folder, not a file.", details=path_details(path)
        )
    if not stat.S_ISREG(told.st_mode):
        raise PathDenied(f"{display_path(path)} is no regular file.", details=path_details(path))


def path_details(path: str) -> dict[str, Any]:
    """Return the details of a failure that concerns a path."""
    return {"path": display_path(path)}


def workspace_error_from(exc: OSError, path: str) -> WorkspaceFailed:
    """Return the failure that says what became of a path."""
    told = path_details(path)
    if isinstance(exc, SymlinkInPath):
        return PathDenied(f"{told['path']} leads over a link.", details=told)
    if exc.errno in _GONE:
        return PathNotFound(f"There is no {told['path']}.", details=told)
    if exc.errno == errno.ENXIO:
        return PathDenied(f"{told['path']} is no regular file.", details=told)
    if exc.errno == errno.ENAMETOOLONG:
        return BadArguments(f"{told['path']} is too long for this file system.", details=told)
    if exc.errno == errno.EEXIST:
        return WriteConflict(f"{told['path']} was made meanwhile.", details=told)
    reason = os.strerror(exc.errno or errno.EIO)
    return DiskFailed(f"{told['path']}: {reason}.", details=told | {"reason": reason})
