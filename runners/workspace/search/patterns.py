r"""Regular expressions over lines: RE2's dialect, and the same said in ripgrep's words.

A line is what stands between two "\n", without a "\r" at its end. RE2 decides what is right and
what matches. Where all of an expression can be said so that ripgrep finds at least the same files,
`for_ripgrep` holds it: `\d \w \s \b` are ASCII in RE2 and Unicode there, `$` stands before "\r\n"
as well, and a few signs mean more inside brackets. Else it is None, and RE2 works alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import re2

from runners.workspace.errors import BadArguments

REGEX_LENGTH = 1000
_META = frozenset("\\.+*?()|[]{}^$#&-~")
_KINDS = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\f\r "}
_REPEAT = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_GROUP = re.compile(r"\(\?(?:P?<[^>]*>|([a-zA-Z-]*)([:)]))")
_POSIX = re.compile(r"\[:\^?[a-z]+:\]")


@dataclass(frozen=True, slots=True)
class LinePattern:
    """An expression that was found right.

    Attributes:
        compiled: for bytes that are UTF-8.
        for_ripgrep: the same or a wider one for ripgrep, or None.
        alone: each line must be tried by itself, for the expression knows where its text begins.
        needed: bytes without which no line matches, each once; those that are known.
    """

    compiled: Any
    for_ripgrep: str | None
    alone: bool
    needed: bytes


def line_pattern(regex: str) -> LinePattern:
    """Read an expression.

    Raises:
        BadArguments: It is empty, too long, wrong, or asks for a line break.
    """
    if not 1 <= len(regex) <= REGEX_LENGTH:
        raise BadArguments(f"regex has 1 to {REGEX_LENGTH} characters.")
    options = re2.Options()
    options.log_errors, options.never_nl, options.never_capture = False, True, True
    try:
        re2.compile(regex, options)  # first as it was given: an error shows what it is about
        compiled = re2.compile(f"(?m){regex}", options)
    except (re2.error, UnicodeEncodeError) as exc:
        raise _wrong(exc) from None
    reader = _RipgrepTranslator(regex)
    said = reader.read()
    needed = bytes(dict.fromkeys(reader.needed)) if reader.translatable else b""
    return LinePattern(compiled, said if reader.translatable else None, reader.alone, needed)


def _wrong(exc: Exception) -> BadArguments:
    told = exc.args[0] if exc.args else "wrong"
    said = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
    if isinstance(exc, UnicodeEncodeError):
        said = "it is no Unicode text"
    return BadArguments(f"regex: {said}"[:300], details={"reason": said[:300]})


class _RipgrepTranslator:
    """Reads an expression that RE2 took, and says it anew for ripgrep.

    Attributes:
        sayable: nothing was met so far that cannot be said.
        alone: see LinePattern.
        needed: characters that every match holds, if all can be said.
    """

    def __init__(self, regex: str) -> None:
        self._regex, self._at = regex, 0
        self._depth, self._alternatives = 0, False
        self._signs: list[str] = []
        self.translatable = not ("(?i" in regex and not regex.isascii())
        self.alone = False
        self._any_case = "(?i" in regex

    def read(self) -> str:
        said = []
        while self._at < len(self._regex):
            said.append(self._one())
        return "".join(said)

    @property
    def needed(self) -> bytes:
        return b"" if self._alternatives or self._any_case else "".join(self._signs).encode()

    def _need(self, sign: str) -> str:
        """Note a character that stands for itself, unless it may be left out."""
        if self._depth == 0 and not self._regex.startswith(("?", "*", "+", "{"), self._at):
            self._signs.append(sign)
        return _quoted(sign)

    def _one(self) -> str:
        sign = self._regex[self._at]
        if sign in "\\[(":
            return {"\\": self._escape, "[": self._brackets, "(": self._group}[sign]()
        if sign == "{" and (repeat := _REPEAT.match(self._regex, self._at)):
            return self._take(repeat[0])
        self._at += 1
        if sign in "\n\r":
            return self._breaks(sign)
        if sign == "$":
            return r"(?:\r?$)"
        self._depth -= sign == ")"
        self._alternatives |= sign == "|" and self._depth == 0
        return sign if sign in ")|*+?.^" else self._need(sign)

    def _escape(self) -> str:
        letter = self._regex[self._at + 1]
        self._at += 2
        if letter in "nr":
            return self._breaks("\n" if letter == "n" else "\r")
        if letter.lower() in _KINDS:
            negated = "^" if letter.isupper() else ""
            return f"(?-i:[{negated}{_KINDS[letter.lower()]}{_nl(letter)}])"
        if letter in "bB":
            return rf"(?-u:\{letter})"
        if letter in "AzC":
            self.alone = True
        if letter == "Q":
            end = self._regex.find("\\E", self._at)
            self._at = len(self._regex) if end < 0 else end + 2
        said = self._plain(letter)
        return said if letter in "tf" else self._need(letter)

    def _plain(self, letter: str) -> str:
        """Say an escape that stands for one character."""
        if letter in "tf":
            return f"\\{letter}"
        if letter.isalnum() or not letter.isascii():
            self.translatable = False
        return _quoted(letter)

    def _breaks(self, sign: str) -> str:
        self.translatable = False
        if sign == "\n":
            raise BadArguments(
                "regex: the search goes line by line, so a line break cannot match.",
                details={"reason": "line break"},
            )
        return ""

    def _group(self) -> str:
        group = _GROUP.match(self._regex, self._at)
        self._depth += group is None or group[2] != ")"
        if group is None:
            return self._take("(", "(?:")
        flags, end = group[1] or "", group[2] or ":"
        if "m" in flags.partition("-")[2]:
            self.alone = True
        if flags not in {"", "i"}:
            self.translatable = False
        return self._take(group[0], f"(?{flags}{end}")

    def _brackets(self) -> str:
        self._at += 1
        negated = self._regex.startswith("^", self._at)
        self._at += negated
        items = [self._item()]
        while self._regex[self._at] != "]":
            items.append(self._item())
        self._at += 1
        return f"[{'^' if negated else ''}{''.join(items)}]"

    def _item(self) -> str:
        posix = _POSIX.match(self._regex, self._at)
        if posix:
            self.translatable = self.translatable and not self._any_case
            return self._take(posix[0])
        low = self._character()
        if self._regex.startswith("-", self._at) and self._regex[self._at + 1] != "]":
            self._at += 1
            return f"{low}-{self._character()}"
        return low

    def _character(self) -> str:
        """Say one character of brackets, or an escape that stands for many."""
        sign = self._regex[self._at]
        self._at += 1
        if sign != "\\":
            return r"\n" if sign == "\n" else _quoted(sign)
        letter = self._regex[self._at]
        self._at += 1
        if letter.lower() in _KINDS:
            self.translatable = self.translatable and not self._any_case
            kind = _KINDS[letter.lower()]
            return f"[^{kind}{_nl(letter)}]" if letter.isupper() else kind
        if letter in "nr":
            return f"\\{letter}"
        return self._plain(letter)

    def _take(self, words: str, said: str | None = None) -> str:
        self._at += len(words)
        return words if said is None else said


def _nl(letter: str) -> str:
    """Return what keeps a negated kind from holding a line break."""
    return r"\n" if letter.isupper() else ""


def _quoted(sign: str) -> str:
    return f"\\{sign}" if sign in _META else sign
