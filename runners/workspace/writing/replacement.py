"""Find and replace in a text, literally or with a linear-time pattern (S4 §1.4).

`find` is a pattern if `flags` are given, if it is written as /…/flags, or if it begins with a group
of flags such as `(?m)`. Every match is replaced, with or without the flag `g`; `replace` may then
contain $1…$99, $<name>, $& and $$. With a literal `find`, `replace` is literal too.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Any

import re2

from runners.workspace.errors import BadArguments, TooLarge, WorkspaceTimeout

MAX_PATTERN_LENGTH = 1000
CLOCK_CHECK_INTERVAL = 64  # matches between two checks of the deadline
_LITERAL = re.compile(r"/((?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\[])+)/([gimsu]*)", re.DOTALL)
_INLINE = re.compile(r"\(\?[a-zA-Z-]+\)")
_REFERENCES = re.compile(r"\$(?:(\$)|(&)|([1-9][0-9]?)|<([^>]*)>)")
_FLAGS = frozenset("gimsu")  # g and u have no effect: all matches are replaced, always Unicode

Piece = str | int  # a part of a replacement: a text, or the number of a group


@dataclass(frozen=True, slots=True)
class Replacement:
    """The text after the replacement, and the number of matches."""

    text: str
    count: int


def replace_all(
    text: str, *, find: str, replace: str, flags: str | None, size_limit: int, deadline: float
) -> Replacement:
    """Return the text with every match replaced, and the number of matches.

    Args:
        size_limit: maximum length of the result, in characters.
        deadline: `time.monotonic()` value.

    Raises:
        BadArguments: `find` is empty or not a valid pattern, a flag is unknown, or `replace` refers
            to a group that does not exist.
        TooLarge: The result would exceed `size_limit`.
        WorkspaceTimeout: The deadline has passed.
    """
    if not find:
        raise BadArguments("find is empty.")
    pattern_and_flags = _as_pattern(find, flags)
    if pattern_and_flags is None:
        count = text.count(find)
        if len(text) + count * (len(replace) - len(find)) > size_limit:
            raise _too_large(size_limit)
        return Replacement(text.replace(find, replace), count)
    pattern = _compiled(*pattern_and_flags)
    pieces = _pieces_of(replace, pattern)
    return _substituted(text, pattern, pieces, size_limit, deadline)


def _as_pattern(find: str, flags: str | None) -> tuple[str, str] | None:
    """Return the pattern and its flags, None if `find` is literal."""
    if flags is not None:
        return find, flags
    if (literal := _LITERAL.fullmatch(find)) is not None:
        return literal[1], literal[2]
    return (find, "") if _INLINE.match(find) else None


def _compiled(pattern: str, flags: str) -> Any:
    if unknown := sorted(set(flags) - _FLAGS):
        raise BadArguments(f"Unknown flag {unknown[0]!r}; the flags are i, m, s, g and u.")
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise BadArguments(f"The pattern is longer than {MAX_PATTERN_LENGTH} characters.")
    options = re2.Options()
    options.log_errors = False  # it would write to stderr
    inline = "".join(sorted(set(flags) & set("ims")))
    try:
        return re2.compile(f"(?{inline}){pattern}" if inline else pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "not a valid pattern"
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise BadArguments(
            f"find: {reason[:200]} (RE2 has no lookaround, no backreference)."
        ) from None
    except UnicodeEncodeError:
        raise BadArguments("find is not valid Unicode.") from None


def _pieces_of(replace: str, pattern: Any) -> list[Piece]:
    pieces: list[Piece] = []
    at = 0
    for insert in _REFERENCES.finditer(replace):
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
    """Return the group that $n refers to, and the digit that is text: with fewer than 12 groups,
    $12 is $1 and the text "2".
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
    result: list[str] = []
    at = count = size = 0
    previous_span: tuple[int, int] | None = None
    for match in pattern.finditer(text):
        if count % CLOCK_CHECK_INTERVAL == 0 and time.monotonic() > deadline:
            raise WorkspaceTimeout("The replacement took too long.")
        span = match.span()
        if span == previous_span:  # re2 may report an empty match twice
            continue
        previous_span = span
        result.append(text[at : span[0]])
        size += len(result[-1])
        at = span[1]
        for piece in pieces:
            result.append(piece if isinstance(piece, str) else match.group(piece) or "")
            size += len(result[-1])
            if size > size_limit:  # checked here, because many `$&` could exhaust the memory
                raise _too_large(size_limit)
        count += 1
    result.append(text[at:])
    if size + len(result[-1]) > size_limit:
        raise _too_large(size_limit)
    return Replacement("".join(result), count)


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"The result would have more than {limit} characters.")
