"""Search the files below a folder for lines, in the order of their paths.

The files that may match come from ripgrep where it is installed and knows the expression, else they
are all that there are; RE2 then finds the lines in them, in either case. So both give the same
answer, and ripgrep only spares the files that hold nothing.
"""

from __future__ import annotations

import bisect
import os
import stat
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from runners.workspace.errors import TooSlow
from runners.workspace.files.globs import Globs, at_any_depth
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.search import ripgrep
from runners.workspace.search.matching import Match, matches_in
from runners.workspace.search.patterns import LinePattern

_TURN = 32  # files that a thread looks at before it takes others
_THREADS = max(1, min(4, os.cpu_count() or 1))
# How many files RE2 looks at alone before it is known how common matches are; a small project is
# done by then, without another process.
_FIRST_FILES = 300
_MANY = 0.3  # where more files than this hold a match, ripgrep spares too little


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched for, and where.

    Attributes:
        path: a folder, or one file.
        file_glob: only files whose path relative to the folder matches; a name alone means it at
            any depth.
        limit: larger files are not searched; bytes.
        until: `time.monotonic()` value after which it gives up.
        forbidden: what the sandbox forbids, for ripgrep not to look at either.
    """

    path: str
    pattern: LinePattern
    file_glob: str | None
    at_most: int
    limit: int
    until: float
    forbidden: Sequence[str] = ()


def search_below(sandbox: Sandbox, search: Search) -> list[Match]:
    """Return the first lines that match, sorted by path and line; paths are the root's.

    Raises:
        TooSlow: The time is over.
        PathDenied, NotThere, BadArguments: As `Sandbox.stat` tells of the path.
    """
    globs = [at_any_depth(search.file_glob)] if search.file_glob is not None else []
    name = sandbox.name_of(search.path)
    if stat.S_ISREG(sandbox.stat(search.path).st_mode):
        wanted = not globs or Globs(globs).match(name.rpartition("/")[2])
        return _lines(sandbox, search, [name] if wanted else [], search.at_most)
    files = sandbox.find(search.path, globs=globs, until=search.until).files
    folder = sandbox.open_dir(search.path)
    try:
        hunt = _Hunt(sandbox, search, folder, "" if name == "." else f"{name}/")
        return hunt.all_in(files)
    finally:
        os.close(folder)


class _Hunt:
    """One search below a folder: folder by folder in the order of paths, until it has enough."""

    def __init__(self, sandbox: Sandbox, search: Search, folder: int, before: str) -> None:
        self._sandbox, self._search = sandbox, search
        self._folder, self._before = folder, before
        self._found: list[Match] = []
        self._seen = self._holding = 0

    def all_in(self, files: Sequence[str]) -> list[Match]:
        """Return the matches in some files; their paths are relative to the folder."""
        folders = _by_folder(files)
        names = sorted(folders)
        waiting: list[str] = []
        taken = 0
        while taken < len(names):
            some, wish = {}, self._wish()
            while taken < len(names) and wish > 0:
                some[names[taken]] = folders[names[taken]]
                wish -= len(folders[names[taken]])
                taken += 1
            waiting = sorted(waiting + self._candidates(some))
            self._seen += sum(map(len, some.values()))
            # What sorts before the next folder can be followed by nothing that sorts before it.
            ready = bisect.bisect_left(waiting, names[taken]) if taken < len(names) else None
            self._look_into(waiting[:ready])
            waiting = waiting[ready:] if ready is not None else []
            if len(self._found) >= self._search.at_most:
                break
        return self._found

    def _wish(self) -> float:
        """Return how many files to take next: all where matches are rare."""
        if self._seen == 0:
            return _FIRST_FILES
        if not self._found:
            return float("inf")
        missing = self._search.at_most - len(self._found)
        return max(_FIRST_FILES, 1.25 * self._seen * missing / len(self._found))

    def _candidates(self, folders: dict[str, list[str]]) -> list[str]:
        """Return the files of some folders that may match."""
        every = [name for names in folders.values() for name in names]
        expression = self._search.pattern.for_ripgrep
        common = self._holding >= _MANY * self._seen
        if expression is None or common or ripgrep.find_ripgrep() is None:
            return every
        try:
            told = ripgrep.files_with_matches(
                self._folder, list(folders), expression, file_glob=self._search.file_glob,
                forbidden=self._search.forbidden, limit=self._search.limit,
                until=self._search.until,
            )  # fmt: skip
        except ripgrep.RipgrepFailed:
            return every
        return list(set(told).intersection(every))

    def _look_into(self, files: Sequence[str]) -> None:
        paths = [self._before + one for one in files]
        room = self._search.at_most - len(self._found)
        found = _lines(self._sandbox, self._search, paths, room)
        self._holding += len({match.path for match in found})
        self._found += found


def _by_folder(files: Sequence[str]) -> dict[str, list[str]]:
    folders = defaultdict(list)
    for one in files:
        folders[one[: one.rfind("/") + 1]].append(one)
    return folders


def _lines(sandbox: Sandbox, search: Search, paths: Sequence[str], room: int) -> list[Match]:
    """Return at most `room` matches of some files, in the order of the files."""
    found: list[Match] = []
    turns = iter([paths[at : at + _TURN] for at in range(0, len(paths), _TURN)])
    with ThreadPoolExecutor(_THREADS) as threads:
        under_way: deque[Future[list[Match]]] = deque()
        for turn in turns:
            under_way.append(threads.submit(_turn, sandbox, search, turn))
            if len(under_way) > 2 * _THREADS:
                found += under_way.popleft().result()
            if len(found) >= room:
                break
        while under_way and len(found) < room:
            found += under_way.popleft().result()
        for each in under_way:
            each.cancel()
    return found[:room]


def _turn(sandbox: Sandbox, search: Search, paths: Sequence[str]) -> list[Match]:
    if time.monotonic() > search.until:
        raise TooSlow("The search did not end in time; name a folder further down.")
    found: list[Match] = []
    for path, data in sandbox.read_some(paths, limit=search.limit):
        found += matches_in(path, data, search.pattern, search.at_most)
    return found
