"""Walk what lies below an open folder: without links, and only where it may lead."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from runners.workspace.errors import WorkspaceTimeout
from runners.workspace.files.globs import Globs, State
from runners.workspace.files.paths import ForbiddenNames
from runners.workspace.files.safe_open import open_below

_TURN = 1000  # names between two looks at the clock
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_NOTHING: State = frozenset()
_LEADS_ELSEWHERE = frozenset({"", ".", ".."})


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


_Inside = list[tuple[str, State]]  # folders to go on into, and what is matched in each


class PathFilter:
    """What a walk keeps: what is not forbidden, and matches one of the globs where there are any.

    Raises:
        PathDenied, BadArguments: As `Globs` says.
    """

    def __init__(self, forbidden: ForbiddenNames, globs: Sequence[str] = ()) -> None:
        self.forbidden, self._globs = forbidden, Globs(globs or ["**"])
        self._chooses = bool(globs)
        self._states = {"": self._globs.start}
        self.start = self._globs.start

    def sift(self, here: Found, state: State, deadline: float | None) -> tuple[Found, _Inside]:
        """Return what to keep of the names in a folder, and where to go on.

        Raises:
            WorkspaceTimeout: It is past `until` (`time.monotonic()`).
        """
        kept, inside = Found([], []), _Inside()
        for some in _turns(here.files, deadline):
            kept.files.extend(self._globs.among(state, some))
        for some in _turns(here.folders, deadline):
            kept.folders.extend(self._globs.among(state, some))
            inside += self._globs.inside(state, some)
        return kept, inside

    def among(self, paths: list[str]) -> list[str]:
        """Return the files that a walk would keep of these paths."""
        names = "/".join(paths).split("/")
        sound = _LEADS_ELSEWHERE.isdisjoint(names) and self.forbidden.without(names) is names
        return paths if sound and not self._chooses else list(filter(self.accepts, paths))

    def accepts(self, path: str) -> bool:
        """Tell whether a walk would keep a file of this path."""
        at = path.rfind("/") + 1
        above, name = path[:at], path[at:]
        if above not in self._states:
            self._states[above] = self._state_in(above)
        state = self._states[above]
        named = [] if name in _LEADS_ELSEWHERE else self.forbidden.without([name])
        return bool(self._globs.among(state, named))

    def _state_in(self, folder: str) -> State:
        state, names = self.start, folder[:-1].split("/")
        if not _LEADS_ELSEWHERE.isdisjoint(names) or self.forbidden.without(names) != names:
            return _NOTHING
        for name in names:
            state = self._globs.onward(state, name)
        return state


def list_entries(folder: int, forbidden: ForbiddenNames) -> Iterator[Entry]:
    """Yield the regular files and folders in an open folder, unsorted, none that is forbidden."""
    files, folders = _names_in(folder, forbidden)
    yield from (Entry(name, False) for name in files)
    yield from (Entry(name, True) for name in folders)


def find_below(folder: int, path_filter: PathFilter, deadline: float | None = None) -> Found:
    """Return what is below an open folder and passes a sieve.

    Args:
        until: `time.monotonic()` value after which it gives up.

    Raises:
        WorkspaceTimeout: It gave up.
    """
    found = Found([], [])
    # Folders that are still to be gone through, under the one that holds them: it is opened once.
    waiting: list[tuple[str, _Inside]] = [("", [("", path_filter.start)])]
    while waiting:
        above, inside = waiting.pop()
        with _opened(folder, above) as held:
            for name, state in inside:
                _need_time(deadline)
                before = f"{above}{name}/" if name else ""
                kept, onward = path_filter.sift(
                    _names_at(held, name, path_filter.forbidden), state, deadline
                )
                found.files.extend([before + one for one in kept.files])
                found.folders.extend([before + one for one in kept.folders])
                if onward:
                    waiting.append((before, onward))
    return found


def iter_files_sorted(
    folder: int, path_filter: PathFilter, deadline: float | None = None
) -> Iterator[str]:
    """Yield the files that `find_below` returns, sorted, and look no further than it is asked for.

    Args:
        folder: stays open for as long.
    """
    waiting: list[tuple[str, State | None]] = [("", path_filter.start)]
    while waiting:
        path, state = waiting.pop()
        if state is None:
            yield path
            continue
        _need_time(deadline)
        with _opened(folder, path) as held:
            kept, inside = path_filter.sift(
                _names_at(held, "", path_filter.forbidden), state, deadline
            )
        if not inside:
            yield from sorted([path + name for name in kept.files])
            continue
        # A folder with its slash sorts as all that is below it does.
        waiting += sorted(
            [(path + name, None) for name in kept.files]
            + [(f"{path}{name}/", onward) for name, onward in inside],
            reverse=True,
        )


def _names_in(folder: int, forbidden: ForbiddenNames) -> Found:
    files, folders = [], []
    with os.scandir(folder) as entries:
        for one in entries:
            if one.is_file(follow_symlinks=False):
                files.append(one.name)
            elif one.is_dir(follow_symlinks=False):
                folders.append(one.name)
    return Found(forbidden.without(files), forbidden.without(folders))


def _names_at(folder: int | None, name: str, forbidden: ForbiddenNames) -> Found:
    """Return the names in a folder's folder ("" for itself); none where it is gone, is a link by
    now, or is not ours to read.
    """
    if folder is None:
        return Found([], [])
    try:
        here = os.open(name or ".", _FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return Found([], [])
    try:
        return _names_in(here, forbidden)
    except OSError:
        return Found([], [])
    finally:
        os.close(here)


@contextlib.contextmanager
def _opened(folder: int, path: str) -> Iterator[int | None]:
    """Hold open what a path with a slash at its end names below a folder; None where it is gone."""
    try:
        held = open_below(folder, path[:-1].split("/") if path else (), _FOLDER)
    except OSError:
        yield None
        return
    try:
        yield held
    finally:
        os.close(held)


def _turns(names: list[str], deadline: float | None) -> Iterable[list[str]]:
    """Return the names some at a time, as long as there is time for them."""
    return (names,) if len(names) <= _TURN else _timed_turns(names, deadline)


def _timed_turns(names: list[str], deadline: float | None) -> Iterator[list[str]]:
    for at in range(0, len(names), _TURN):
        _need_time(deadline)
        yield names[at : at + _TURN]


def _need_time(deadline: float | None) -> None:
    if deadline is not None and time.monotonic() > deadline:
        raise WorkspaceTimeout("There is more below this folder than can be looked at in time.")
