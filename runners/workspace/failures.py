"""What the file system refused, as a caller is told it: without the root's place."""

from __future__ import annotations

import errno
import os

from runners.workspace.errors import (
    BadArguments,
    DiskFailed,
    NotThere,
    PathDenied,
    WorkspaceFailed,
    WriteConflict,
)
from runners.workspace.opening import LinkOnTheWay
from runners.workspace.paths import shown

_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ESTALE}


def failure_of(exc: OSError, path: str) -> WorkspaceFailed:
    """Return the failure that says what became of a path."""
    told = {"path": shown(path)}
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
