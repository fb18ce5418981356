"""Globs over paths below a folder: `*`, `?`, `[a-z]` within a name, `**` over folders, `{a,b}`.

The globs are run as one nondeterministic automaton, a folder name at a time. So a walk enters only
folders that can still lead to a match, and matching never backtracks: the time is bounded by the
length of the glob times that of the path.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence, Set
from operator import methodcaller

from runners.workspace.errors import BadArguments, PathDenied
from runners.workspace.files.paths import display_path

MAX_GLOB_LENGTH, MAX_GLOBS, MAX_ALTERNATIVES = 500, 100, 64
MAX_EXPANDED = 256  # globs in all after braces are expanded; each is tried on every name
_ANY_DEPTH = None  # `**`
_NameTest = Callable[[str], object] | None
State = frozenset[tuple[int, int]]  # (number of the glob, index of the part to match next)


class Globs:
    """Include patterns; a path matches when one of them matches all of it.

    Raises:
        PathDenied: A glob leads out of the folder.
        BadArguments: A glob is empty or too long, or the globs expand to too many.
    """

    def __init__(self, globs: Sequence[str]) -> None:
        if len(globs) > MAX_GLOBS:
            raise BadArguments(f"More than {MAX_GLOBS} globs.")
        expanded = list(dict.fromkeys(one for glob in globs for one in _expand_braces(glob)))
        if len(expanded) > MAX_EXPANDED:
            raise BadArguments(f"The globs expand to more than {MAX_EXPANDED} globs.")
        self._parts = [_split(one) for one in expanded]
        self._globs = [tuple(map(_matcher, parts)) for parts in self._parts]
        self._final_tests: dict[State, _NameTest] = {}
        self._next_states: dict[State, State | None] = {}
        self.start = self._closure((number, 0) for number in range(len(self._globs)))

    def matching_names(self, state: State, names: list[str]) -> list[str]:
        """Return the names that complete a match in a folder that has this state."""
        if state not in self._final_tests:
            self._final_tests[state] = _test_for_any(
                {
                    self._parts[number][at]
                    for number, at in state
                    if at == len(self._globs[number]) - 1
                }
            )
        final_test = self._final_tests[state]
        return names if final_test is _always else list(filter(final_test, names))

    def matching_subfolders(self, state: State, names: list[str]) -> list[tuple[str, State]]:
        """Return the subfolders that can contain a match, each with its state."""
        if state not in self._next_states:
            self._next_states[state] = (
                None if self._depends_on_name(state) else self.advance(state, "")
            )
        same = self._next_states[state]
        if same is None:
            return [(name, found) for name in names if (found := self.advance(state, name))]
        return [(name, same) for name in names] if same else []

    def advance(self, state: State, name: str) -> State:
        """Return the state in a subfolder; it is empty if nothing below can match."""
        positions = []
        for number, at in state:
            part = self._globs[number][at]
            if part is _ANY_DEPTH:
                positions.append((number, at))
            elif at < len(self._globs[number]) - 1 and part(name):
                positions.append((number, at + 1))
        return self._closure(positions)

    def _depends_on_name(self, state: State) -> bool:
        """Return whether the next state depends on the subfolder's name (not only `**` is next)."""
        return any(
            self._globs[number][at] is not _ANY_DEPTH and at < len(self._globs[number]) - 1
            for number, at in state
        )

    def _closure(self, positions: Iterable[tuple[int, int]]) -> State:
        """Return the positions and those reached when a `**` matches no folder at all."""
        found = set()
        for number, at in positions:
            parts, position = self._globs[number], at
            found.add((number, position))
            while parts[position] is _ANY_DEPTH and position < len(parts) - 1:
                position += 1
                found.add((number, position))
        return frozenset(found)


def at_any_depth(glob: str) -> str:
    """Return the glob for a search: without a slash it matches the name at any depth."""
    return glob if "/" in glob or not glob else f"**/{glob}"


def _split(glob: str) -> list[str]:
    names = [name for name in glob.split("/") if name not in {"", "."}]
    if not names:
        raise BadArguments("A glob is empty.")
    return names


def _matcher(name: str) -> _NameTest:
    return _ANY_DEPTH if name == "**" else _test_for_any({name})


def _test_for_any(names: Set[str]) -> Callable[[str], object]:
    """Return one test that accepts what any of the patterns does, to test a large folder once."""
    if not names.isdisjoint({"*", "**"}):
        return _always
    patterns = sorted(name for name in names if any(character in name for character in "*?["))
    plain = names - set(patterns)
    if not patterns:
        return plain.__contains__
    suffixes = tuple(name[1:] for name in patterns if name[0] == "*" and not {*name[1:]} & {*"*?["})
    if len(suffixes) == len(names):
        return methodcaller("endswith", suffixes)  # "*.txt", faster than a regular expression
    expressions = [
        *map(fnmatch.translate, patterns),
        *(rf"{re.escape(name)}\Z" for name in sorted(plain)),
    ]
    return re.compile("|".join(expressions)).match


def _always(name: str) -> bool:
    return True


def _expand_braces(glob: str) -> list[str]:
    """Return the globs that a glob's braces expand to."""
    if not glob or "\0" in glob or len(glob) > MAX_GLOB_LENGTH:
        raise BadArguments(f"A glob must have 1 to {MAX_GLOB_LENGTH} characters and no NUL.")
    done, pending = [], [glob]
    while pending:
        one = pending.pop()
        # The innermost braces first: an outer pair would be split at an inner comma.
        braces = re.search(r"\{([^{}]*,[^{}]*)\}", one)
        if braces is None:
            done.append(_checked(one))
        else:
            before, after = one[: braces.start()], one[braces.end() :]
            pending += [before + choice + after for choice in braces[1].split(",")]
        if len(done) + len(pending) > MAX_ALTERNATIVES:
            raise BadArguments(f"A glob's braces expand to more than {MAX_ALTERNATIVES} globs.")
    return done


def _checked(glob: str) -> str:
    if glob.startswith("/") or "\\" in glob or re.match(r"[A-Za-z]:", glob):
        raise PathDenied(
            f"The glob {display_path(glob)} is not relative.", details={"glob": display_path(glob)}
        )
    if ".." in glob.split("/"):
        raise PathDenied(
            f"The glob {display_path(glob)} leads up.", details={"glob": display_path(glob)}
        )
    return glob
