"""Return whether two folders have files in common, whatever their paths are.

Every call on a workspace compares its root with those of all other workspaces, so this works on
texts: `Path` takes ten times as long.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

# One line per mount (proc(5)): id, parent, device, root in its file system, mount point, ….
MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")  # of blanks, tabs, newlines and backslashes
Inode = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system: its device, the folder of it that is mounted, and where."""

    device: str
    root: str
    point: str


def read_mounts() -> list[Mount]:
    """Return what is mounted, the innermost first; an empty list where the system has no /proc."""
    try:
        lines = os.fsdecode(MOUNTS.read_bytes()).splitlines()
    except OSError:
        return []
    fields = [line.split(" ") for line in lines]
    found = [
        Mount(device, _unescaped(root), _unescaped(at)) for _, _, device, root, at, *_ in fields
    ]
    return sorted(found, key=lambda mount: len(mount.point), reverse=True)


class FolderPlace:
    """Where a folder is: its real path, its inodes, and its places in the mounted file systems.

    The inodes find other spellings of one path on file systems that ignore case or normalize
    Unicode. The mounts find bind mounts (Linux). A folder that does not exist has only its path.
    """

    def __init__(self, path: Path, mounts: Sequence[Mount]) -> None:
        self.real = os.path.realpath(path)
        self._inode = _inode(self.real)
        self._inodes_above = {_inode(above) for above in _parents(self.real)}
        below = [one for one in mounts if _is_inside(one.point, self.real)]
        self._stored = {(one.device, one.root) for one in below}
        holder = next((one for one in mounts if _is_inside(self.real, one.point)), None)
        if holder is not None:
            inside = self.real[len(holder.point.rstrip("/")) :]
            self._stored.add((holder.device, (holder.root.rstrip("/") + inside) or "/"))

    def overlaps(self, other: FolderPlace) -> bool:
        """Return whether the folders are the same, or one contains the other or a part of it."""
        return (
            _are_nested(self.real, other.real)
            or (self._inode is not None and self._inode in {other._inode, *other._inodes_above})
            or (other._inode is not None and other._inode in self._inodes_above)
            or any(
                device == other_device and _are_nested(path, other_path)
                for device, path in self._stored
                for other_device, other_path in other._stored
            )
        )


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)


def _inode(path: str) -> Inode | None:
    try:
        found = os.stat(path)  # noqa: PTH116  (see the module's docstring)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _parents(path: str) -> Iterable[str]:
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        yield path


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _are_nested(one: str, other: str) -> bool:
    return _is_inside(one, other) or _is_inside(other, one)
