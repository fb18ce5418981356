"""Text for a person who decides by it: nothing is left out, and every character can be seen.

Characters that are invisible, that reorder or erase others, or that look like an ASCII character
are written as `⟨NAME⟩` or with their code point. A long run of one character is written once, with
its number: `⟨SPACE × 70000⟩`; in a word with a letter that is not ASCII, only where the word begins
with the run. The characters of this notation are written as code points where the text itself has
them, so a text cannot imitate it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from django.utils.translation import gettext

from decisions.foundation.presentation.look_alikes import positions_of_look_alikes, script_of

# Around the name of a secret in a text: two lone surrogates, which no text of a caller has.
SECRET_OPEN, SECRET_CLOSE = "\udcf0", "\udcf1"
RUN = 64  # equal characters in a row that are still written out
BLANKS = 8  # blanks in a row, inside of a line
INDENT = 40  # blanks at the start of a line
_NOTATION = frozenset("⟨⟩↵×")
_NAMES = {
    " ": "SPACE",
    "\t": "TAB",
    "\n": "NEWLINE",
    "\r": "CR",
    "\x00": "NUL",
    "\x07": "BEL",
    "\x08": "BACKSPACE",
    "\x1b": "ESC",
    "\x7f": "DEL",
}
# Invisible characters of categories that are visible otherwise.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0")
_INVISIBLE_KINDS = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
_OVERLAY = 1  # combining class of marks that strike a character through
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
_SPECIAL = re.compile(
    f"{SECRET_OPEN}[^{SECRET_CLOSE}]*{SECRET_CLOSE}"
    rf"|(?P<run>.)(?P=run){{{RUN},}}"
    r"|\ {2,}|\ (?=\n|\Z)|\n+"
    r"|[\x00-\x1f\x7f]"
    r"|[^\x00-\x7f]",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a text as it is shown.

    Attributes:
        text: what is shown; a notation without its brackets.
        length: how many characters of the text it stands for.
        kind: `` (as it is), `mark` (a notation), `secret` (the name of a secret), `rtl` (letters
            that are written from right to left), `newline`.
        times: how often the character of a notation stands in a row.
    """

    text: str
    length: int
    kind: str = ""
    times: int = 1

    @property
    def shown(self) -> str:
        """The text with the brackets of a notation."""
        if self.kind == "secret":
            return f"⟨secret {self.text}⟩"
        if self.kind == "newline":
            return "↵\n" if self.times == 1 else f"⟨NEWLINE × {self.times}⟩\n"
        if self.kind != "mark":
            return self.text
        return f"⟨{self.text}⟩" if self.times == 1 else f"⟨{self.text} × {self.times}⟩"


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of one value that fits on a page.

    Attributes:
        name: the name of the value, in visible characters.
        about: its type and length.
        range: the characters of the value that the fragment has, where it has not all.
        is_diff: its lines begin with `+`, `-` or a blank, as in a unified diff.
    """

    name: str
    about: str
    parts: tuple[Part, ...]
    range: str = ""
    is_diff: bool = False

    @property
    def cost(self) -> int:
        """The number of characters that it takes on a page."""
        return len(self.name) + len(self.about) + sum(len(part.shown) for part in self.parts)


def secret_named(name: str) -> str:
    """Return the text that stands for a secret in arguments that are shown."""
    return f"{SECRET_OPEN}{name}{SECRET_CLOSE}"


def parts_of(text: str) -> list[Part]:
    """Return a text as parts that a person can see."""
    return [_joined(same) for same in _groups(_parts(text))]


def visible(text: str, length: int | None = None) -> str:
    """Return a text with every character visible, on one line; shortened where `length` is given,
    with the number of its characters.
    """
    cut = text if length is None else text[:length]
    is_plain = _SPECIAL.search(cut) is None  # most texts of a list
    shown = cut if is_plain else "".join(_on_one_line(part) for part in parts_of(cut))
    if len(cut) == len(text):
        return shown
    return shown + gettext("⟨shortened; %(length)s characters⟩") % {"length": len(text)}


def revealed(text: str) -> str:
    """Return a text that a person reads but does not confirm, such as a model's question: hidden
    characters are written out, and letters, blanks and lines stay as they are.
    """
    return "".join(f"⟨{_name(char)}⟩" if _is_unseen(char) else char for char in text)


def as_lines(parts: Iterable[Part]) -> str:
    """Return parts as text for a terminal; letters written from right to left are code points."""
    return "".join(_codes(part.text) if part.kind == "rtl" else part.shown for part in parts)


def fragments_of(
    name: str, text: str, about: str, *, size: int, is_diff: bool = False
) -> Iterator[Fragment]:
    """Yield a text in fragments of about `size` shown characters."""
    parts, used, first, at = list[Part](), 0, 0, 0
    for part in _split(parts_of(text), size):
        if used and used + len(part.shown) > size:
            yield _fragment(name, about, parts, (first, at, len(text)), is_diff)
            parts, used, first = [], 0, at
        parts.append(part)
        used += len(part.shown)
        at += part.length
    yield _fragment(name, about, parts, (first, at, len(text)), is_diff)


def _fragment(
    name: str, about: str, parts: list[Part], at: tuple[int, int, int], is_diff: bool
) -> Fragment:
    first, end, total = at
    is_whole = end - first == total
    numbers = {"first": first + 1, "last": end, "total": total}
    covers = "" if is_whole else gettext("characters %(first)s to %(last)s of %(total)s") % numbers
    return Fragment(name, about, tuple(parts), covers, is_diff)


def _split(parts: Iterable[Part], size: int) -> Iterator[Part]:
    for part in parts:
        if part.kind not in ("", "rtl"):
            yield part
            continue
        for start in range(0, len(part.text), size):
            piece = part.text[start : start + size]
            yield Part(piece, len(piece), part.kind)


def _groups(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Yield plain texts that follow each other together, and equal notations."""
    group: list[Part] = []
    for part in parts:
        if group and not _belongs(group[-1], part):
            yield group
            group = []
        group.append(part)
    if group:
        yield group


def _belongs(before: Part, part: Part) -> bool:
    if before.kind != part.kind or part.kind in ("newline", "secret"):
        return False
    return part.kind != "mark" or before.text == part.text


def _joined(group: list[Part]) -> Part:
    first = group[0]
    if len(group) == 1:
        return first
    length = sum(part.length for part in group)
    if first.kind == "mark":
        return Part(first.text, length, "mark", sum(part.times for part in group))
    return Part("".join(part.text for part in group), length, first.kind)


def _on_one_line(part: Part) -> str:
    return "↵" if part.kind == "newline" and part.times == 1 else part.shown.rstrip("\n")


def _parts(text: str) -> Iterator[Part]:
    look_alikes, at = positions_of_look_alikes(text), 0
    for found in _SPECIAL.finditer(text):
        if at < found.start():
            yield Part(text[at : found.start()], found.start() - at)
        yield from _special(text, found, found.start() in look_alikes)
        at = found.end()
    if at < len(text):
        yield Part(text[at:], len(text) - at)


def _special(text: str, found: re.Match[str], is_look_alike: bool) -> Iterator[Part]:
    start, special = found.start(), found[0]
    if special[0] == SECRET_OPEN and special[-1] == SECRET_CLOSE:
        yield Part(visible(special[1:-1]), len(special), "secret")
    elif special[0] == "\n":
        yield from _newlines(len(special))
    elif special[0] == " ":
        yield _blanks(text, start, found.end())
    elif found["run"]:
        yield Part(_run_name(special[0]), len(special), "mark", len(special))
    else:
        yield from _char(special, text[start - 1 : start], is_look_alike)


def _newlines(count: int) -> Iterator[Part]:
    if count > 2:
        yield Part("", count, "newline", count)
    else:
        yield from [Part("", 1, "newline")] * count


def _blanks(text: str, start: int, end: int) -> Part:
    count = end - start
    is_trailing = end == len(text) or text[end] == "\n"
    is_indent = start == 0 or text[start - 1] == "\n"
    if is_trailing or count > (INDENT if is_indent else BLANKS):
        return Part("SPACE", count, "mark", count)
    return Part(text[start:end], count)


def _char(char: str, previous: str, is_look_alike: bool) -> Iterator[Part]:
    if _is_hidden(char, previous):
        yield Part(_name(char), 1, "mark")
        return
    yield Part(char, 1, "rtl" if unicodedata.bidirectional(char) in _RIGHT_TO_LEFT else "")
    if is_look_alike:
        yield Part(_code(char), 0, "mark")


@lru_cache(maxsize=4096)
def _is_hidden(char: str, previous: str) -> bool:
    kind = unicodedata.category(char)
    if kind in ("Mn", "Me"):
        return kind == "Me" or unicodedata.combining(char) == _OVERLAY or not _takes_marks(previous)
    return kind in _INVISIBLE_KINDS or char in _INVISIBLE or char in _NOTATION


def _takes_marks(char: str) -> bool:
    """Return whether marks on a character are ordinary; on a Latin letter they may cover it, and on
    another mark they may cover that.
    """
    is_letter = bool(char) and unicodedata.category(char) in ("Lu", "Ll", "Lt", "Lm", "Lo", "Mc")
    return is_letter and not char.isascii() and script_of(char) != "LATIN"


def _is_unseen(char: str) -> bool:
    if char.isascii():
        return unicodedata.category(char) == "Cc" and char not in "\n\t"
    kind = unicodedata.category(char)
    return (kind in _INVISIBLE_KINDS and kind != "Zs") or char in _INVISIBLE or char in "⟨⟩"


def _run_name(char: str) -> str:
    if char in _NAMES or _is_hidden(char, "x"):
        return _name(char)
    return char if char.isascii() else f"{char} {_code(char)}"


def _name(char: str) -> str:
    if char in _NAMES:
        return _NAMES[char]
    return f"{_code(char)} {unicodedata.name(char, '')}".rstrip()


def _code(char: str) -> str:
    return f"U+{ord(char):04X}"


def _codes(text: str) -> str:
    return "".join(f"⟨{_code(char)}⟩" for char in text)
