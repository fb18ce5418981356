"""Collect the first matches by path and line, whatever the order in which they are found."""

from __future__ import annotations

from collections.abc import Sequence

from runners.workspace.search.line_matching import Match


class FirstMatches:
    """The first `max_matches` matches, by path and line, of all that were added."""

    def __init__(self, max_matches: int, found: Sequence[Match] = ()) -> None:
        self._max_matches, self._found = max_matches, list(found)
        self._last: str | None = None  # the path of the last of the first matches, once enough

    def __len__(self) -> int:
        return len(self._found)

    def add(self, matches: Sequence[Match]) -> None:
        """Add the matches of files that were not searched before."""
        self._found += matches
        # Sorting after every file would be too slow, so it is done now and then.
        if self.enough and (self._last is None or len(self._found) > 1.5 * self._max_matches):
            self._found = self.sorted()
            self._last = self._found[-1].path

    @property
    def enough(self) -> bool:
        """Whether there are `max_matches`; a further match counts only if it sorts before one."""
        return len(self._found) >= self._max_matches

    def count_files(self) -> int:
        """Return the number of files with a match."""
        return len({match.path for match in self._found})

    def wants(self, path: str) -> bool:
        """Return whether a match in this file could be among the first."""
        return self._last is None or path <= self._last

    def sorted(self) -> list[Match]:
        """Return the first matches, sorted by path and line."""
        return sorted(self._found)[: self._max_matches]
