"""Walk what lies below an open folder: sorted, without links, and only where it may lead."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from runners.workspace.opening import open_below

_FOLDER = os.O_RDONLY | os.O_DIRECTORY


class Entry(NamedTuple):
    """A file or a folder in a folder."""

    name: str
    folder: bool

    def is_dir(self) -> bool:
        """Tell whether it is a folder."""
        return self.folder

    def is_file(self) -> bool:
        """Tell whether it is a regular file."""
        return not self.folder


def entries_of(folder: int, is_forbidden: Callable[[str], bool]) -> Iterator[Entry]:
    """Yield the regular files and folders in an open folder, unsorted, none that is forbidden."""
    with os.scandir(folder) as found:
        for one in found:
            inside = one.is_dir(follow_symlinks=False)
            if not (inside or one.is_file(follow_symlinks=False)) or is_forbidden(one.name):
                continue
            if one.name.isascii() or _is_unicode(one.name):
                yield Entry(one.name, inside)


def walk_folder(
    folder: int, is_forbidden: Callable[[str], bool], globs: Sequence[str]
) -> Iterator[tuple[str, bool]]:
    """Yield what is below an open folder as (path, whether a folder), sorted by path."""
    found: list[tuple[str, bool]] = []
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        parts = waiting.pop()
        before = "".join(f"{part}/" for part in parts)
        try:
            here = open_below(folder, parts, _FOLDER)
        except OSError:
            continue  # gone meanwhile, or not ours to read
        try:
            for name, inside in entries_of(here, is_forbidden):
                found.append((before + name, inside))
                if inside:
                    waiting.append((*parts, name))
        finally:
            os.close(here)
    yield from sorted(found)


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
