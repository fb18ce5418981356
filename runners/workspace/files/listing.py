"""Walk what lies below an open folder: without links, and only where it may lead."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from runners.workspace.errors import TooSlow
from runners.workspace.files.globs import Globs, State
from runners.workspace.files.opening import open_below
from runners.workspace.files.paths import Forbidden

_TURN = 1000  # names between two looks at the clock
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


class Found(NamedTuple):
    """Paths relative to where a walk began, in no order."""

    files: list[str]
    folders: list[str]


_NOTHING: State = frozenset()


def entries_of(folder: int, forbidden: Forbidden) -> Iterator[Entry]:
    """Yield the regular files and folders in an open folder, unsorted, none that is forbidden."""
    files, folders = names_in(folder, forbidden)
    yield from (Entry(name, False) for name in files)
    yield from (Entry(name, True) for name in folders)


def names_in(folder: int, forbidden: Forbidden) -> Found:
    """Return the names in an open folder; see `entries_of`."""
    found = Found([], [])
    with os.scandir(folder) as entries:
        for one in forbidden.without(entries):
            if one.is_file(follow_symlinks=False):
                found.files.append(one.name)
            elif one.is_dir(follow_symlinks=False):
                found.folders.append(one.name)
    return found


def find_below(
    folder: int, forbidden: Forbidden, globs: Globs | None, until: float | None = None
) -> Found:
    """Return what is below an open folder; with globs, what they match.

    Args:
        until: `time.monotonic()` value after which it gives up.

    Raises:
        TooSlow: It gave up.
    """
    found = Found([], [])
    waiting: list[tuple[str, State | None]] = [("", globs.start if globs else None)]
    while waiting:
        before, state = waiting.pop()
        _need_time(until)
        here = _names_at(folder, before, forbidden)
        if globs is None or state is None:
            matched, inside = here, [(name, state) for name in here.folders]
        else:
            matched, inside = Found([], []), []
            for some in _turns(here.files, until):
                matched.files.extend(globs.among(state, some))
            for some in _turns(here.folders, until):
                matched.folders.extend(globs.among(state, some))
                inside += [(name, globs.onward(state, name)) for name in some]
        found.files.extend([before + name for name in matched.files])
        found.folders.extend([before + name for name in matched.folders])
        waiting += [(f"{before}{name}/", onward) for name, onward in inside if onward != _NOTHING]
    return found


def _turns(names: list[str], until: float | None) -> Iterator[list[str]]:
    """Yield the names some at a time, as long as there is time for them."""
    for at in range(0, len(names), _TURN):
        _need_time(until)
        yield names[at : at + _TURN]


def _need_time(until: float | None) -> None:
    if until is not None and time.monotonic() > until:
        raise TooSlow("There is more below this folder than can be looked at in time.")


def _names_at(folder: int, before: str, forbidden: Forbidden) -> Found:
    """Return the names in a folder on the way; none where it is gone, or not ours to read."""
    try:
        here = open_below(folder, before[:-1].split("/") if before else (), _FOLDER)
    except OSError:
        return Found([], [])
    try:
        return names_in(here, forbidden)
    except OSError:
        return Found([], [])
    finally:
        os.close(here)
