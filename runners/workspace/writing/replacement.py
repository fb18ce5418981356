"""Find and replace in a text: literal, or with a linear-time pattern (S4 §1.4).

`find` is a pattern when `flags` are given, when it is written as /…/flags, or when it begins with a
group of flags such as `(?m)`. Of a pattern every match is replaced, whether or not `g` is among the
flags; `replace` then knows $1…$99, $<name>, $& and $$. A literal `find` takes `replace` as it is.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Any

import re2

from runners.workspace.errors import BadArguments, TooLarge, WorkspaceTimeout

MAX_PATTERN_LENGTH = 1000
CLOCK_CHECK_INTERVAL = 64  # matches: the clock
_LITERAL = re.compile(r"/((?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\[])+)/([gimsu]*)", re.DOTALL)
_INLINE = re.compile(r"\(\?[a-zA-Z-]+\)")
_INSERTS = re.compile(r"\$(?:(\$)|(&)|([1-9][0-9]?)|<([^>]*)>)")
_FLAGS = frozenset("gimsu")  # g and u change nothing: every match, always Unicode

Piece = str | int  # of a replacement: a text, or the number of a group


@dataclass(frozen=True, slots=True)
class Replacement:
    """A text with what was found replaced."""

    text: str
    count: int


def replace_all(
    text: str, *, find: str, replace: str, flags: str | None, size_limit: int, deadline: float
) -> Replacement:
    """Return the text with every match replaced, and how many there were.

    Args:
        size_limit: characters that the result may have at most.
        deadline: `time.monotonic()` value in seconds.

    Raises:
        BadArguments: `find` is empty or no such pattern, a flag is unknown, or `replace` names a
            group that there is not.
        TooLarge, WorkspaceTimeout: The result would pass the limit, or its making the deadline.
    """
    if not find:
        raise BadArguments("find is empty.")
    written = _as_pattern(find, flags)
    if written is None:
        count = text.count(find)
        if len(text) + count * (len(replace) - len(find)) > size_limit:
            raise _too_large(size_limit)
        return Replacement(text.replace(find, replace), count)
    pattern = _compiled(*written)
    pieces = _pieces_of(replace, pattern)
    return _substituted(text, pattern, pieces, size_limit, deadline)


def _as_pattern(find: str, flags: str | None) -> tuple[str, str] | None:
    """Return the pattern and its flags, or None where `find` is meant literally."""
    if flags is not None:
        return find, flags
    if (literal := _LITERAL.fullmatch(find)) is not None:
        return literal[1], literal[2]
    return (find, "") if _INLINE.match(find) else None


def _compiled(pattern: str, flags: str) -> Any:
    if unknown := sorted(set(flags) - _FLAGS):
        raise BadArguments(f"Unknown flag {unknown[0]!r}; i, m, s, g and u are known.")
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise BadArguments(f"The pattern is longer than {MAX_PATTERN_LENGTH} characters.")
    options = re2.Options()
    options.log_errors = False  # it would write to stderr
    inline = "".join(sorted(set(flags) & set("ims")))
    try:
        return re2.compile(f"(?{inline}){pattern}" if inline else pattern, options)
    except re2.error as error:
        told = error.args[0] if error.args else "it is no pattern"
        told = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
        raise BadArguments(
            f"find: {told[:200]} (RE2 has no lookaround, no backreference)."
        ) from None
    except UnicodeEncodeError:
        raise BadArguments("find is no Unicode text.") from None


def _pieces_of(replace: str, pattern: Any) -> list[Piece]:
    pieces: list[Piece] = []
    at = 0
    for insert in _INSERTS.finditer(replace):
        pieces.append(replace[at : insert.start()])
        at = insert.end()
        dollar, whole, number, name = insert.groups()
        if dollar:
            pieces.append("$")
        elif whole:
            pieces.append(0)
        elif number:
            group, rest = _group_of(number, pattern.groups)
            pieces += [group, rest]
        else:
            pieces.append(_group_named(name, pattern.groupindex))
    return [piece for piece in (*pieces, replace[at:]) if piece != ""]


def _group_of(number: str, groups: int) -> tuple[int, str]:
    """Return the group that $n names, and a digit after it that is text: $12 is $1 and a 2 where
    there are fewer than 12 groups.
    """
    for digits in (len(number), 1):
        if int(number[:digits]) <= groups:
            return int(number[:digits]), number[digits:]
    raise BadArguments(f"replace: there is no group ${number}; the pattern has {groups}.")


def _group_named(name: str, groups: dict[str, int]) -> int:
    if name not in groups:
        raise BadArguments(f"replace: there is no group named {name[:40]!r}.")
    return groups[name]


def _substituted(
    text: str, pattern: Any, pieces: list[Piece], size_limit: int, deadline: float
) -> Replacement:
    made: list[str] = []
    at = count = size = 0
    before: tuple[int, int] | None = None
    for match in pattern.finditer(text):
        if count % CLOCK_CHECK_INTERVAL == 0 and time.monotonic() > deadline:
            raise WorkspaceTimeout("The replacement took too long.")
        span = match.span()
        if span == before:  # re2 finds an empty match twice where it had to look for it
            continue
        before = span
        made.append(text[at : span[0]])
        size += len(made[-1])
        at = span[1]
        for piece in pieces:
            made.append(piece if isinstance(piece, str) else match.group(piece) or "")
            size += len(made[-1])
            if size > size_limit:  # before it fills the memory: `$&` may stand there often
                raise _too_large(size_limit)
        count += 1
    made.append(text[at:])
    if size + len(made[-1]) > size_limit:
        raise _too_large(size_limit)
    return Replacement("".join(made), count)


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"The result would have more than {limit} characters.")
