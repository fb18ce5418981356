"""Search the files below a folder for matching lines, in the order of their paths.

RE2 decides which lines match. Where ripgrep is installed and supports the expression, it only
narrows down the lines that RE2 must check, so the result is the same with and without it.

One thread reads and matches. With two, they compete for the GIL at every file, and the search takes
three times as long.
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

_BATCH = 32  # files between two checks whether there are enough matches
# Files that RE2 searches first, to estimate how common matches are. A small project is finished by
# then, without starting another process.
_FIRST_FILES = 200
# If an estimated number of files up to this suffices, they are walked in order, so that the search
# can stop early; if more are needed, ripgrep walks the rest of the tree faster.
_MAX_SORTED_WALK = 6_000
_DENSE_RATIO = 0.3  # if more files than this share have a match, ripgrep saves too little
_DENSE_FACTOR = 4  # then this many times more files are walked in order: RE2 needs one pass only


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What to search for, and where.

    Attributes:
        path: a folder, or one file.
        file_glob: only files whose path relative to the folder matches; without a slash it matches
            names at any depth.
        max_file_bytes: larger files are skipped.
        deadline: `time.monotonic()` value.
    """

    path: str
    pattern: LinePattern
    file_glob: str | None
    max_matches: int
    max_file_bytes: int
    deadline: float


def search_below(sandbox: Sandbox, search: SearchQuery) -> list[Match]:
    """Return the first matching lines by path and line; paths are relative to the root.

    Raises:
        WorkspaceTimeout: The deadline has passed.
        PathDenied, PathNotFound, BadArguments: As `Sandbox.stat` for the path.
    """
    name = sandbox.normalize_path(search.path)
    is_file = stat.S_ISREG(sandbox.stat(search.path).st_mode)
    path_filter = sandbox.path_filter(
        [at_any_depth(search.file_glob)] if search.file_glob is not None else []
    )
    if is_file:
        parent, _, last = f"/{name}".rpartition("/")
        run = _SearchRun(sandbox, search, path_filter, parent[1:])
        return run.in_files([last] if path_filter.accepts(last) else [])
    return _SearchRun(sandbox, search, path_filter, "" if name == "." else name).in_folder()


class _SearchRun:
    """One execution of a search; paths are relative to its folder until a file is read."""

    def __init__(
        self, sandbox: Sandbox, search: SearchQuery, path_filter: PathFilter, folder: str
    ) -> None:
        self._sandbox, self._search, self._filter = sandbox, search, path_filter
        self._folder = folder or "."
        self._prefix = f"{folder}/" if folder else ""
        self._found = FirstMatches(search.max_matches)
        self._required = RequiredBytes(search.pattern)

    def in_files(self, files: Iterable[str]) -> list[Match]:
        """Return the matches in files, given in path order."""
        self._search_all(iter(files))
        return self._found.sorted()

    def in_folder(self) -> list[Match]:
        """Return the matches in all files below the folder."""
        search = self._search
        walk = self._sandbox.iter_files_sorted(self._folder, self._filter, deadline=search.deadline)
        expression = search.pattern.for_ripgrep
        with contextlib.closing(walk):
            if expression is None or ripgrep.find_ripgrep() is None:
                return self.in_files(walk)
            first = list(islice(walk, _FIRST_FILES))
            self.in_files(first)
            if len(first) == _FIRST_FILES and not self._found.enough:
                opened = self._sandbox.open_dir(self._folder)
                try:
                    self._search_rest(self._ripgrep_query(opened, expression), walk, first)
                finally:
                    os.close(opened)
        return self._found.sorted()

    def _ripgrep_query(self, opened: int, expression: str) -> ripgrep.RipgrepQuery:
        search = self._search
        return ripgrep.RipgrepQuery(
            opened,
            expression,
            search.file_glob,
            self._filter.forbidden.as_ripgrep_glob(),
            search.max_file_bytes,
            search.deadline,
        )

    def _search_rest(
        self, query: ripgrep.RipgrepQuery, walk: Iterator[str], searched: Sequence[str]
    ) -> None:
        """Search the files after the first ones, which are `searched`, with the help of ripgrep."""
        count, paths = len(searched), searched
        while paths and not self._found.enough:
            wanted_files, last = self._files_to_search(count), paths[-1]
            is_dense = self._found.count_files() >= _DENSE_RATIO * count
            if wanted_files > _MAX_SORTED_WALK * (_DENSE_FACTOR if is_dense else 1):
                self._search_candidates(
                    ripgrep.candidate_lines_below(query),
                    lambda files: self._filter.accepted([file for file in files if file > last]),  # noqa: B023
                    otherwise=walk,
                )
                return
            paths = list(islice(walk, int(min(wanted_files, _MAX_SORTED_WALK))))
            count += len(paths)
            if is_dense:
                self._search_all(iter(paths))
                continue
            folders = sorted({path[: path.rfind("/") + 1] for path in paths})
            candidates = ripgrep.candidate_lines_in(folders, query)
            self._search_candidates(candidates, set(paths).intersection, otherwise=iter(paths))

    def _files_to_search(self, searched: int) -> float:
        """Estimate how many more files must be searched until there are enough matches."""
        if not len(self._found):
            return float("inf")
        missing = self._search.max_matches - len(self._found)
        return max(_FIRST_FILES, 1.25 * searched * missing / len(self._found))

    def _search_candidates(
        self,
        candidates: Generator[ripgrep.CandidateLines],
        wanted: Callable[[Iterable[str]], Iterable[str]],
        otherwise: Iterator[str],
    ) -> None:
        """Search the wanted files among ripgrep's candidates; if ripgrep fails, `otherwise`."""
        found_before = self._found.sorted()
        try:
            with contextlib.closing(candidates):
                for lines_by_path in candidates:
                    self._search_files(sorted(wanted(lines_by_path)), lines_by_path)
        except ripgrep.RipgrepFailed:
            self._found = FirstMatches(self._search.max_matches, found_before)
            self._search_all(otherwise)

    def _search_all(self, files: Iterator[str]) -> None:
        """Search files in path order until there are enough matches."""
        while not self._found.enough and (batch := list(islice(files, _BATCH))):
            self._search_files(batch, {})

    def _search_files(self, files: Sequence[str], lines_by_path: ripgrep.CandidateLines) -> None:
        """Search files; in a file with an entry in `lines_by_path`, only those lines."""
        search, has_required_bytes, start = self._search, self._required.all_in, len(self._prefix)
        paths = filter(self._found.wants, [self._prefix + file for file in files])
        for path, data in self._sandbox.read_many(paths, limit=search.max_file_bytes):
            if time.monotonic() > search.deadline:
                raise WorkspaceTimeout(
                    "The search did not finish in time; name a folder further down."
                )
            if lines := lines_by_path.get(path[start:]):
                self._found.add(matches_at(path, data, search.pattern, lines, search.max_matches))
            elif has_required_bytes(data):
                self._found.add(matches_in(path, data, search.pattern, search.max_matches))
