"""Walk the tree below an open folder: no links are followed, forbidden names are skipped."""

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

_BATCH = 1000  # names between two checks of the deadline
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_NOTHING: State = frozenset()
_NOT_NAMES = frozenset({"", ".", ".."})


class Entry(NamedTuple):
    """A file or a folder in a folder."""

    name: str
    folder: bool


class Found(NamedTuple):
    """Paths relative to the folder that was walked, unordered."""

    files: list[str]
    folders: list[str]


_Subfolders = list[tuple[str, State]]  # subfolders to walk, and the state of the globs in each


class PathFilter:
    """Accepts paths without forbidden names that match one of the globs, if there are any.

    Raises:
        PathDenied, BadArguments: As `Globs`.
    """

    def __init__(self, forbidden: ForbiddenNames, globs: Sequence[str] = ()) -> None:
        self.forbidden, self._globs = forbidden, Globs(globs or ["**"])
        self._has_globs = bool(globs)
        self._states = {"": self._globs.start}
        self.start = self._globs.start

    def filter_folder(
        self, current: Found, state: State, deadline: float | None
    ) -> tuple[Found, _Subfolders]:
        """Return the accepted names in a folder, and the subfolders to walk.

        Raises:
            WorkspaceTimeout: The deadline (`time.monotonic()`) has passed.
        """
        accepted, subfolders = Found([], []), _Subfolders()
        for batch in _batches(current.files, deadline):
            accepted.files.extend(self._globs.matching_names(state, batch))
        for batch in _batches(current.folders, deadline):
            accepted.folders.extend(self._globs.matching_names(state, batch))
            subfolders += self._globs.matching_subfolders(state, batch)
        return accepted, subfolders

    def accepted(self, paths: list[str]) -> list[str]:
        """Return the file paths among these that a walk would return."""
        names = "/".join(paths).split("/")
        is_clean = _NOT_NAMES.isdisjoint(names) and self.forbidden.allowed(names) is names
        return paths if is_clean and not self._has_globs else list(filter(self.accepts, paths))

    def accepts(self, path: str) -> bool:
        """Return whether a walk would return a file with this path."""
        at = path.rfind("/") + 1
        parent, name = path[:at], path[at:]
        if parent not in self._states:
            self._states[parent] = self._state_of(parent)
        state = self._states[parent]
        names = [] if name in _NOT_NAMES else self.forbidden.allowed([name])
        return bool(self._globs.matching_names(state, names))

    def _state_of(self, folder: str) -> State:
        state, names = self.start, folder[:-1].split("/")
        if not _NOT_NAMES.isdisjoint(names) or self.forbidden.allowed(names) != names:
            return _NOTHING
        for name in names:
            state = self._globs.advance(state, name)
        return state


def list_entries(folder: int, forbidden: ForbiddenNames) -> Iterator[Entry]:
    """Yield the regular files and folders in an open folder, unsorted, without forbidden names."""
    files, folders = _names_in(folder, forbidden)
    yield from (Entry(name, False) for name in files)
    yield from (Entry(name, True) for name in folders)


def find_below(folder: int, path_filter: PathFilter, deadline: float | None = None) -> Found:
    """Return the files and folders below an open folder that a filter accepts.

    Args:
        deadline: `time.monotonic()` value.

    Raises:
        WorkspaceTimeout: The deadline has passed.
    """
    found = Found([], [])
    # Folders that are still to be walked, grouped by their parent, which is opened once per group.
    pending: list[tuple[str, _Subfolders]] = [("", [("", path_filter.start)])]
    while pending:
        parent, subfolders = pending.pop()
        with _opened(folder, parent) as opened:
            for name, state in subfolders:
                _check_deadline(deadline)
                prefix = f"{parent}{name}/" if name else ""
                accepted, below = path_filter.filter_folder(
                    _names_at(opened, name, path_filter.forbidden), state, deadline
                )
                found.files.extend([prefix + file for file in accepted.files])
                found.folders.extend([prefix + subfolder for subfolder in accepted.folders])
                if below:
                    pending.append((prefix, below))
    return found


def iter_files_sorted(
    folder: int, path_filter: PathFilter, deadline: float | None = None
) -> Iterator[str]:
    """Yield the files that `find_below` returns, sorted by path; walk only as far as is consumed.

    Args:
        folder: must stay open until the iterator is closed.
    """
    pending: list[tuple[str, State | None]] = [("", path_filter.start)]
    while pending:
        path, state = pending.pop()
        if state is None:
            yield path
            continue
        _check_deadline(deadline)
        with _opened(folder, path) as opened:
            accepted, subfolders = path_filter.filter_folder(
                _names_at(opened, "", path_filter.forbidden), state, deadline
            )
        if not subfolders:
            yield from sorted([path + name for name in accepted.files])
            continue
        # With a slash at its end, a folder sorts where the paths below it do.
        pending += sorted(
            [(path + name, None) for name in accepted.files]
            + [(f"{path}{name}/", next_state) for name, next_state in subfolders],
            reverse=True,
        )


def _names_in(folder: int, forbidden: ForbiddenNames) -> Found:
    files, folders = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                files.append(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
    return Found(forbidden.allowed(files), forbidden.allowed(folders))


def _names_at(folder: int | None, name: str, forbidden: ForbiddenNames) -> Found:
    """Return the names in a subfolder ("" for the folder itself).

    Empty if it was deleted, has been replaced by a link, or cannot be read.
    """
    if folder is None:
        return Found([], [])
    try:
        current = os.open(name or ".", _FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return Found([], [])
    try:
        return _names_in(current, forbidden)
    except OSError:
        return Found([], [])
    finally:
        os.close(current)


@contextlib.contextmanager
def _opened(folder: int, path: str) -> Iterator[int | None]:
    """Yield a descriptor of a subfolder (path with a slash at its end), None if it is gone."""
    try:
        opened = open_below(folder, path[:-1].split("/") if path else (), _FOLDER)
    except OSError:
        yield None
        return
    try:
        yield opened
    finally:
        os.close(opened)


def _batches(names: list[str], deadline: float | None) -> Iterable[list[str]]:
    """Return the names in batches; the deadline is checked before each of several."""
    return (names,) if len(names) <= _BATCH else _timed_batches(names, deadline)


def _timed_batches(names: list[str], deadline: float | None) -> Iterator[list[str]]:
    for at in range(0, len(names), _BATCH):
        _check_deadline(deadline)
        yield names[at : at + _BATCH]


def _check_deadline(deadline: float | None) -> None:
    if deadline is not None and time.monotonic() > deadline:
        raise WorkspaceTimeout(
            "The folder has too many files to list in time; name a folder further down."
        )
