"""Globs over paths below a folder: `*`, `?`, `[a-z]` within a name, `**` over folders, `{a,b}`.

A glob is matched name by name on the way down, so a walk enters only folders that can still lead to
a match, and no glob takes longer than its length times the path's (no backtracking).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence, Set
from operator import methodcaller

from runners.workspace.errors import BadArguments, PathDenied
from runners.workspace.files.paths import display_path

MAX_GLOB_LENGTH, MAX_GLOBS, MAX_ALTERNATIVES = 500, 100, 64
MAX_EXPANDED = 256  # globs without braces in all: each is tried on every name
_ACROSS = None  # `**`
_Part = Callable[[str], object] | None
State = frozenset[tuple[int, int]]


class Globs:
    """Include patterns; a path matches when one of them matches all of it.

    Raises:
        PathDenied: One leads out of the folder.
        BadArguments: One is empty, too long, or too many are meant by their braces.
    """

    def __init__(self, globs: Sequence[str]) -> None:
        if len(globs) > MAX_GLOBS:
            raise BadArguments(f"More than {MAX_GLOBS} globs.")
        meant = list(dict.fromkeys(one for glob in globs for one in _plain(glob)))
        if len(meant) > MAX_EXPANDED:
            raise BadArguments(f"The globs with their braces mean more than {MAX_EXPANDED} globs.")
        self._names = [_names(one) for one in meant]
        self._globs = [tuple(map(_matcher, names)) for names in self._names]
        self._last: dict[State, _Part] = {}
        self._deeper: dict[State, State | None] = {}
        self.start = self._spread((number, 0) for number in range(len(self._globs)))

    def among(self, state: State, names: list[str]) -> list[str]:
        """Return the names that are a match where the state was reached."""
        if state not in self._last:
            self._last[state] = _one_of(
                {
                    self._names[number][at]
                    for number, at in state
                    if at == len(self._globs[number]) - 1
                }
            )
        last = self._last[state]
        return names if last is _anything else list(filter(last, names))

    def inside(self, state: State, names: list[str]) -> list[tuple[str, State]]:
        """Go into folders; return those that a match can be below, each with the state in it."""
        if state not in self._deeper:
            self._deeper[state] = None if self._minds_names(state) else self.onward(state, "")
        same = self._deeper[state]
        if same is None:
            return [(name, found) for name in names if (found := self.onward(state, name))]
        return [(name, same) for name in names] if same else []

    def onward(self, state: State, name: str) -> State:
        """Go into a folder; return the state in it (empty: no match can be below)."""
        places = []
        for number, at in state:
            part = self._globs[number][at]
            if part is _ACROSS:
                places.append((number, at))
            elif at < len(self._globs[number]) - 1 and part(name):
                places.append((number, at + 1))
        return self._spread(places)

    def _minds_names(self, state: State) -> bool:
        """Tell whether it depends on a folder's name where one comes to in it."""
        return any(
            self._globs[number][at] is not _ACROSS and at < len(self._globs[number]) - 1
            for number, at in state
        )

    def _spread(self, places: Iterable[tuple[int, int]]) -> State:
        """Return the places with those that a `**` reaches by standing for no folder at all."""
        found = set()
        for number, at in places:
            parts, here = self._globs[number], at
            found.add((number, here))
            while parts[here] is _ACROSS and here < len(parts) - 1:
                here += 1
                found.add((number, here))
        return frozenset(found)


def at_any_depth(glob: str) -> str:
    """Return a glob as searches read it: without a slash it means the name, wherever it lies."""
    return glob if "/" in glob or not glob else f"**/{glob}"


def _names(glob: str) -> list[str]:
    names = [name for name in glob.split("/") if name not in {"", "."}]
    if not names:
        raise BadArguments("A glob is empty.")
    return names


def _matcher(name: str) -> _Part:
    return _ACROSS if name == "**" else _one_of({name})


def _one_of(names: Set[str]) -> Callable[[str], object]:
    """Return one test for many, or a large folder would be gone through for each."""
    if not names.isdisjoint({"*", "**"}):
        return _anything
    signs = sorted(name for name in names if any(sign in name for sign in "*?["))
    plain = names - set(signs)
    if not signs:
        return plain.__contains__
    ends = tuple(name[1:] for name in signs if name[0] == "*" and not {*name[1:]} & {*"*?["})
    if len(ends) == len(names):
        return methodcaller("endswith", ends)  # "*.txt", quicker than an expression
    told = [*map(fnmatch.translate, signs), *(rf"{re.escape(name)}\Z" for name in sorted(plain))]
    return re.compile("|".join(told)).match


def _anything(name: str) -> bool:
    return True


def _plain(glob: str) -> list[str]:
    """Return the globs without braces that a glob means."""
    if not glob or "\0" in glob or len(glob) > MAX_GLOB_LENGTH:
        raise BadArguments(f"A glob has 1 to {MAX_GLOB_LENGTH} characters, and no NUL among them.")
    done, waiting = [], [glob]
    while waiting:
        one = waiting.pop()
        # The innermost braces first, so that what is left of them is never cut.
        braces = re.search(r"\{([^{}]*,[^{}]*)\}", one)
        if braces is None:
            done.append(_judged(one))
        else:
            before, after = one[: braces.start()], one[braces.end() :]
            waiting += [before + choice + after for choice in braces[1].split(",")]
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise BadArguments(f"The braces of a glob mean more than {MAX_ALTERNATIVES} globs.")
    return done


def _judged(glob: str) -> str:
    if glob.startswith("/") or "\\" in glob or re.match(r"[A-Za-z]:", glob):
        raise PathDenied(
            f"The glob {display_path(glob)} is not relative.", details={"glob": display_path(glob)}
        )
    if ".." in glob.split("/"):
        raise PathDenied(
            f"The glob {display_path(glob)} leads up.", details={"glob": display_path(glob)}
        )
    return glob
