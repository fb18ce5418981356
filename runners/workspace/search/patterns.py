r"""Regular expressions over lines in RE2's dialect, and their translation for ripgrep.

A line is the text between two "\n", without a "\r" at its end. RE2 decides whether an expression is
valid and what it matches. `for_ripgrep` is a translation with which ripgrep finds at least the same
lines: `\d \w \s \b` are ASCII in RE2 but Unicode in ripgrep, `$` must also match before "\r\n", and
some characters have a meaning in ripgrep's brackets only. It is None if an expression cannot be
translated; then RE2 searches without ripgrep.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import re2

from runners.workspace.errors import BadArguments

REGEX_LENGTH = 1000
_META = frozenset("\\.+*?()|[]{}^$#&-~")
_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\f\r "}
_REPEAT = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_GROUP = re.compile(r"\(\?(?:P?<[^>]*>|([a-zA-Z-]*)([:)]))")
_POSIX = re.compile(r"\[:\^?[a-z]+:\]")


@dataclass(frozen=True, slots=True)
class LinePattern:
    """A valid expression.

    Attributes:
        compiled: the RE2 pattern, for UTF-8 bytes.
        for_ripgrep: a translation for ripgrep that matches the same lines or more, or None.
        line_by_line: each line must be searched separately, because the expression depends on where
            the text begins or ends.
        required_bytes: bytes that every match contains, as far as known, each once.
    """

    compiled: Any
    for_ripgrep: str | None
    line_by_line: bool
    required_bytes: bytes


def line_pattern(regex: str) -> LinePattern:
    """Compile an expression and translate it for ripgrep.

    Raises:
        BadArguments: It is empty, too long, invalid, or matches a line break.
    """
    if not 1 <= len(regex) <= REGEX_LENGTH:
        raise BadArguments(f"regex must have 1 to {REGEX_LENGTH} characters.")
    options = re2.Options()
    options.log_errors, options.never_nl, options.never_capture = False, True, True
    try:
        re2.compile(regex, options)  # first unchanged, so that an error quotes the caller's text
        compiled = re2.compile(f"(?m){regex}", options)
    except (re2.error, UnicodeEncodeError) as exc:
        raise _invalid(exc) from None
    translator = _RipgrepTranslator(regex)
    translated = translator.translate()
    if not translator.translatable:
        return LinePattern(compiled, None, translator.line_by_line, b"")
    required_bytes = bytes(dict.fromkeys(translator.required_bytes))
    return LinePattern(compiled, translated, translator.line_by_line, required_bytes)


def _invalid(exc: Exception) -> BadArguments:
    detail = exc.args[0] if exc.args else "invalid"
    reason = detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
    if isinstance(exc, UnicodeEncodeError):
        reason = "not valid Unicode"
    return BadArguments(f"regex: {reason}"[:300], details={"reason": reason[:300]})


class _RipgrepTranslator:
    """Translates an expression that RE2 accepts for ripgrep.

    Attributes:
        translatable: nothing so far that cannot be translated.
        line_by_line: see LinePattern.
        required_bytes: what every match contains; valid only if all is translatable.
    """

    def __init__(self, regex: str) -> None:
        self._regex, self._at = regex, 0
        self._depth, self._alternatives = 0, False
        self._literals: list[str] = []
        self.translatable = not ("(?i" in regex and not regex.isascii())
        self.line_by_line = False
        self._any_case = "(?i" in regex

    def translate(self) -> str:
        translated = []
        while self._at < len(self._regex):
            translated.append(self._translate_next())
        return "".join(translated)

    @property
    def required_bytes(self) -> bytes:
        return b"" if self._alternatives or self._any_case else "".join(self._literals).encode()

    def _add_literal(self, character: str) -> str:
        """Translate a literal character, and record it as required unless a match may omit it."""
        if self._depth == 0 and not self._regex.startswith(("?", "*", "+", "{"), self._at):
            self._literals.append(character)
        return _quoted(character)

    def _translate_next(self) -> str:
        character = self._regex[self._at]
        if character in "\\[(":
            return {"\\": self._escape, "[": self._brackets, "(": self._group}[character]()
        if character == "{" and (repeat := _REPEAT.match(self._regex, self._at)):
            return self._consume(repeat[0])
        self._at += 1
        if character in "\n\r":
            return self._line_break(character)
        if character == "$":
            return r"(?:\r?$)"
        self._depth -= character == ")"
        self._alternatives |= character == "|" and self._depth == 0
        return character if character in ")|*+?.^" else self._add_literal(character)

    def _escape(self) -> str:
        letter = self._regex[self._at + 1]
        self._at += 2
        if letter in "nr":
            return self._line_break("\n" if letter == "n" else "\r")
        if letter.lower() in _CLASSES:
            negated = "^" if letter.isupper() else ""
            return f"(?-i:[{negated}{_CLASSES[letter.lower()]}{_exclude_line_break(letter)}])"
        if letter in "bB":
            return rf"(?-u:\{letter})"
        if letter in "AzC":
            self.line_by_line = True
        if letter == "Q":
            end = self._regex.find("\\E", self._at)
            self._at = len(self._regex) if end < 0 else end + 2
        translated = self._single_escape(letter)
        return translated if letter in "tf" else self._add_literal(letter)

    def _single_escape(self, letter: str) -> str:
        """Translate an escape of a single character."""
        if letter in "tf":
            return f"\\{letter}"
        if letter.isalnum() or not letter.isascii():
            self.translatable = False
        return _quoted(letter)

    def _line_break(self, character: str) -> str:
        self.translatable = False
        if character == "\n":
            raise BadArguments(
                "regex: lines are searched one by one, so a line break cannot match.",
                details={"reason": "line break"},
            )
        return ""

    def _group(self) -> str:
        group = _GROUP.match(self._regex, self._at)
        self._depth += group is None or group[2] != ")"
        if group is None:
            return self._consume("(", "(?:")
        flags, end = group[1] or "", group[2] or ":"
        if "m" in flags.partition("-")[2]:
            self.line_by_line = True
        if flags not in {"", "i"}:
            self.translatable = False
        return self._consume(group[0], f"(?{flags}{end}")

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
            return self._consume(posix[0])
        low = self._character()
        if self._regex.startswith("-", self._at) and self._regex[self._at + 1] != "]":
            self._at += 1
            return f"{low}-{self._character()}"
        return low

    def _character(self) -> str:
        """Translate one character in brackets, or an escape of a character class."""
        character = self._regex[self._at]
        self._at += 1
        if character != "\\":
            return r"\n" if character == "\n" else _quoted(character)
        letter = self._regex[self._at]
        self._at += 1
        if letter.lower() in _CLASSES:
            self.translatable = self.translatable and not self._any_case
            characters = _CLASSES[letter.lower()]
            return (
                f"[^{characters}{_exclude_line_break(letter)}]" if letter.isupper() else characters
            )
        if letter in "nr":
            return f"\\{letter}"
        return self._single_escape(letter)

    def _consume(self, source: str, translated: str | None = None) -> str:
        self._at += len(source)
        return source if translated is None else translated


def _exclude_line_break(letter: str) -> str:
    """Return what excludes the line break from a negated character class."""
    return r"\n" if letter.isupper() else ""


def _quoted(character: str) -> str:
    return f"\\{character}" if character in _META else character
