"""Keep the first matches by path and line, in whatever order they are found."""

from __future__ import annotations

from collections.abc import Sequence

from runners.workspace.search.line_matching import Match


class FirstMatches:
    """At most so many matches: those that sort first of all that were added."""

    def __init__(self, at_most: int, found: Sequence[Match] = ()) -> None:
        self._at_most, self._found = at_most, list(found)
        self._last: str | None = None  # the path of the last one that counts, once there are enough

    def __len__(self) -> int:
        return len(self._found)

    def add(self, matches: Sequence[Match]) -> None:
        """Take in the matches of files that were not looked into before."""
        self._found += matches
        # Sorted now and then, not for every file.
        if self.enough and (self._last is None or len(self._found) > 1.5 * self._at_most):
            self._found = self.sorted()
            self._last = self._found[-1].path

    @property
    def enough(self) -> bool:
        """Tell whether no more are kept but such as sort before one of these."""
        return len(self._found) >= self._at_most

    def count_files(self) -> int:
        """Return how many files they are in."""
        return len({match.path for match in self._found})

    def wants(self, path: str) -> bool:
        """Tell whether a match in this file could be among the first."""
        return self._last is None or path <= self._last

    def sorted(self) -> list[Match]:
        """Return the matches, by path and line."""
        return sorted(self._found)[: self._at_most]
