"""Search the files below a folder for lines, in the order of their paths.

The lines that may match come from ripgrep where it is installed and knows the expression, else they
are all that there are; RE2 decides in either case. So both give the same answer, and ripgrep only
spares what holds nothing.

One thread reads and tries: with two, each waits for the other's turn with the interpreter at every
file, and the search takes three times as long.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from runners.workspace.errors import WorkspaceTimeout
from runners.workspace.files.globs import at_any_depth
from runners.workspace.files.listing import PathFilter
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.search import ripgrep
from runners.workspace.search.first_matches import FirstMatches
from runners.workspace.search.line_matching import Match, RequiredBytes, matches_at, matches_in
from runners.workspace.search.patterns import LinePattern

_TURN = 32  # files between two looks at whether there is enough
# How many files RE2 looks at alone before it is known how common matches are; a small project is
# done by then, without another process.
_FIRST_FILES = 200
# As many files are walked in their order, so that the search ends where it has enough; when it may
# take more, ripgrep is quicker to walk all that is left.
_IN_ORDER = 6_000
_MANY = 0.3  # where more files than this hold a match, ripgrep spares too little
_COMMON = 4  # then so many times as many are walked in order: there is no second pass over them


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What is searched for, and where.

    Attributes:
        path: a folder, or one file.
        file_glob: only files whose path relative to the folder matches; a name alone means it at
            any depth.
        limit: larger files are not searched; bytes.
        until: `time.monotonic()` value after which it gives up.
    """

    path: str
    pattern: LinePattern
    file_glob: str | None
    at_most: int
    limit: int
    deadline: float


def search_below(sandbox: Sandbox, search: SearchQuery) -> list[Match]:
    """Return the first lines that match, sorted by path and line; paths are the root's.

    Raises:
        WorkspaceTimeout: The time is over.
        PathDenied, PathNotFound, BadArguments: As `Sandbox.stat` tells of the path.
    """
    name = sandbox.normalize_path(search.path)
    single = stat.S_ISREG(sandbox.stat(search.path).st_mode)
    path_filter = sandbox.path_filter(
        [at_any_depth(search.file_glob)] if search.file_glob is not None else []
    )
    if single:
        above, _, last = f"/{name}".rpartition("/")
        hunt = _Hunt(sandbox, search, path_filter, above[1:])
        return hunt.in_files([last] if path_filter.accepts(last) else [])
    return _Hunt(sandbox, search, path_filter, "" if name == "." else name).in_folder()


class _Hunt:
    """One search below a folder; paths are relative to it until a file is read."""

    def __init__(
        self, sandbox: Sandbox, search: SearchQuery, path_filter: PathFilter, folder: str
    ) -> None:
        self._sandbox, self._search, self._sieve = sandbox, search, path_filter
        self._folder = folder or "."
        self._before = f"{folder}/" if folder else ""
        self._found = FirstMatches(search.at_most)
        self._needed = RequiredBytes(search.pattern)

    def in_files(self, files: Iterable[str]) -> list[Match]:
        """Return the matches in some files that are given in order."""
        self._look_into_all(iter(files))
        return self._found.sorted()

    def in_folder(self) -> list[Match]:
        """Return the matches in all files below the folder."""
        search = self._search
        walk = self._sandbox.iter_files_sorted(self._folder, self._sieve, deadline=search.deadline)
        expression = search.pattern.for_ripgrep
        with contextlib.closing(walk):
            if expression is None or ripgrep.find_ripgrep() is None:
                return self.in_files(walk)
            first = list(islice(walk, _FIRST_FILES))
            self.in_files(first)
            if len(first) == _FIRST_FILES and not self._found.enough:
                opened = self._sandbox.open_dir(self._folder)
                try:
                    self._ask(self._asked(opened, expression), walk, first)
                finally:
                    os.close(opened)
        return self._found.sorted()

    def _asked(self, opened: int, expression: str) -> ripgrep.RipgrepQuery:
        search = self._search
        return ripgrep.RipgrepQuery(
            opened,
            expression,
            search.file_glob,
            self._sieve.forbidden.glob(),
            search.limit,
            search.deadline,
        )

    def _ask(self, asked: ripgrep.RipgrepQuery, walk: Iterator[str], seen: Sequence[str]) -> None:
        """Look on after the first files, those that are seen, into what ripgrep tells of."""
        count, some = len(seen), seen
        while some and not self._found.enough:
            wish, last = self._wish(count), some[-1]
            common = self._found.count_files() >= _MANY * count
            if wish > _IN_ORDER * (_COMMON if common else 1):
                self._look_into_told(
                    ripgrep.candidate_lines_below(asked),
                    lambda paths: self._sieve.among([one for one in paths if one > last]),  # noqa: B023
                    otherwise=walk,
                )
                return
            some = list(islice(walk, int(min(wish, _IN_ORDER))))
            count += len(some)
            if common:
                self._look_into_all(iter(some))
                continue
            folders = sorted({path[: path.rfind("/") + 1] for path in some})
            told = ripgrep.candidate_lines_in(folders, asked)
            self._look_into_told(told, set(some).intersection, otherwise=iter(some))

    def _wish(self, seen: int) -> float:
        """Return how many files it may take from here until enough is found."""
        if not len(self._found):
            return float("inf")
        missing = self._search.at_most - len(self._found)
        return max(_FIRST_FILES, 1.25 * seen * missing / len(self._found))

    def _look_into_told(
        self,
        told: Generator[ripgrep.CandidateLines],
        wanted: Callable[[Iterable[str]], Iterable[str]],
        otherwise: Iterator[str],
    ) -> None:
        """Look into the wanted ones of the files that ripgrep tells of; should it fail, into all
        the others.
        """
        kept = self._found.sorted()
        try:
            with contextlib.closing(told):
                for places in told:
                    self._look_into(sorted(wanted(places)), places)
        except ripgrep.RipgrepFailed:
            self._found = FirstMatches(self._search.at_most, kept)
            self._look_into_all(otherwise)

    def _look_into_all(self, files: Iterator[str]) -> None:
        """Add the matches in files that come in order, as long as there is not enough."""
        while not self._found.enough and (turn := list(islice(files, _TURN))):
            self._look_into(turn, {})

    def _look_into(self, files: Sequence[str], places: ripgrep.CandidateLines) -> None:
        """Add the matches in files; only in some lines, where places are given for a file."""
        search, needed, start = self._search, self._needed.all_in, len(self._before)
        paths = filter(self._found.wants, [self._before + one for one in files])
        for path, data in self._sandbox.read_many(paths, limit=search.limit):
            if time.monotonic() > search.deadline:
                raise WorkspaceTimeout(
                    "The search did not end in time; name a folder further down."
                )
            if lines := places.get(path[start:]):
                self._found.add(matches_at(path, data, search.pattern, lines, search.at_most))
            elif needed(data):
                self._found.add(matches_in(path, data, search.pattern, search.at_most))
