"""Convert OS errors to workspace errors; messages name the relative path, never the root."""

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
from runners.workspace.files.paths import display_path, path_details
from runners.workspace.files.safe_open import SymlinkInPath

_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ESTALE}


def require_regular_file(info: os.stat_result, path: str) -> None:
    """Raise unless the path is a regular file.

    Raises:
        BadArguments: It is a folder.
        PathDenied: It is a link, a pipe, a device or a socket.
    """
    if stat.S_ISDIR(info.st_mode):
        raise BadArguments(
            f"{display_path(path)} is a folder, not a file.", details=path_details(path)
        )
    if not stat.S_ISREG(info.st_mode):
        raise PathDenied(f"{display_path(path)} is not a regular file.", details=path_details(path))


def workspace_error_from(exc: OSError, path: str) -> WorkspaceFailed:
    """Return the workspace error for an OS error about a path."""
    details: dict[str, Any] = {**path_details(path)}
    if isinstance(exc, SymlinkInPath):
        return PathDenied(f"{details['path']} leads through a link.", details=details)
    if exc.errno in _GONE:
        return PathNotFound(f"{details['path']} does not exist.", details=details)
    if exc.errno == errno.ENXIO:
        return PathDenied(f"{details['path']} is not a regular file.", details=details)
    if exc.errno == errno.ENAMETOOLONG:
        return BadArguments(f"{details['path']} is too long for this file system.", details=details)
    if exc.errno == errno.EEXIST:
        return WriteConflict(f"{details['path']} was created meanwhile.", details=details)
    reason = os.strerror(exc.errno or errno.EIO)
    return DiskFailed(f"{details['path']}: {reason}.", details=details | {"reason": reason})
