"""Resolve paths inside a folder with the kernel: this process confines itself to it by chroot.

`python -m tests.support.chroot_oracle ROOT` reads a JSON list of paths from stdin. It prints a list
of the real paths of the regular files that they open, or null where a path opens none. Without the
privilege to chroot, it resolves the paths itself.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

MAX_LINKS = 40  # the kernel's limit: a path with more links cannot be opened


def _meaning(path: str) -> str | None:
    try:
        return str(Path(path).resolve()) if Path(path).is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None


def _walked_to(path: str) -> str | None:
    try:
        return _walked(path)
    except (OSError, ValueError):  # a name that is too long or contains NUL
        return None


def _walked(path: str) -> str | None:
    """Return what `_meaning` returns inside the chroot, computed outside of it.

    `..` stops at the root, and absolute links start at the root.
    """
    here: list[str] = []
    left = path.split("/")[::-1]
    links = 0
    while left and links <= MAX_LINKS:
        part = left.pop()
        if part == "..":
            here = here[:-1]
        elif part not in {"", "."}:
            spot = Path(*here, part)
            if spot.is_symlink():
                links += 1
                target = str(spot.readlink())
                here = [] if target.startswith("/") else here
                left += target.split("/")[::-1]
            elif not spot.exists() or (left and not spot.is_dir()):
                return None
            else:
                here.append(part)
    return "/" + "/".join(here) if not left and Path(*here).is_file() else None


def main(root: str) -> None:
    """Print the result for every path."""
    paths = json.load(sys.stdin)
    os.chdir(root)
    if os.getuid() == 0:
        os.chroot(".")
        told = [_meaning("/" + path) for path in paths]
    else:
        told = [_walked_to(path) for path in paths]
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
