"""Resolve paths inside a folder with the kernel: this process confines itself to it by chroot.

`python -m tests.support.workspace.chroot_oracle ROOT` reads a JSON list of paths from stdin. It
prints a list of the real paths of the regular files that they open, or null where a path opens
none. Without the privilege to chroot, it resolves the paths itself.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

MAX_LINKS = 40  # the kernel's limit: a path with more links cannot be opened


def _resolved_by_kernel(path: str) -> str | None:
    try:
        return str(Path(path).resolve()) if Path(path).is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None


def _resolved_or_none(path: str) -> str | None:
    try:
        return _resolved_in_process(path)
    except (OSError, ValueError):  # a name that is too long or contains NUL
        return None


def _resolved_in_process(path: str) -> str | None:
    """Return what `_resolved_by_kernel` returns inside the chroot, computed outside of it.

    `..` stops at the root, and absolute links start at the root.
    """
    parts: list[str] = []
    remaining = path.split("/")[::-1]
    links = 0
    while remaining and links <= MAX_LINKS:
        part = remaining.pop()
        if part == "..":
            parts = parts[:-1]
        elif part not in {"", "."}:
            current = Path(*parts, part)
            if current.is_symlink():
                links += 1
                target = str(current.readlink())
                parts = [] if target.startswith("/") else parts
                remaining += target.split("/")[::-1]
            elif not current.exists() or (remaining and not current.is_dir()):
                return None
            else:
                parts.append(part)
    return "/" + "/".join(parts) if not remaining and Path(*parts).is_file() else None


def main(root: str) -> None:
    """Print the result for every path."""
    paths = json.load(sys.stdin)
    os.chdir(root)
    if os.getuid() == 0:
        os.chroot(".")
        results = [_resolved_by_kernel("/" + path) for path in paths]
    else:
        results = [_resolved_or_none(path) for path in paths]
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
