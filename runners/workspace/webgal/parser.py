"""Parse the lines of a WebGAL scene exactly as the engine's own parser does.

`parse` returns what `parse(sceneTextPreProcess(text))` of webgal-parser 4.5.18 returns, including
its quirks, because a check is useless if it reads a line differently from the engine. Comments mark
the quirks. Every text is accepted; `checks` reports what is wrong with a statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

COMMANDS = frozenset(
    {
        "say",
        "changeBg",
        "changeFigure",
        "bgm",
        "playVideo",
        "pixiPerform",
        "pixiInit",
        "intro",
        "miniAvatar",
        "changeScene",
        "choose",
        "end",
        "setComplexAnimation",
        "setFilter",
        "label",
        "jumpLabel",
        "chooseLabel",
        "setVar",
        "if",
        "callScene",
        "showVars",
        "unlockCg",
        "unlockBgm",
        "filmMode",
        "setTextbox",
        "setAnimation",
        "playEffect",
        "setTempAnimation",
        "setTransform",
        "setTransition",
        "getUserInput",
        "applyStyle",
        "wait",
        "callSteam",
    }
)
# Commands of newer engines; the parser's last release on npm treats them as speakers.
NEWER_COMMANDS = frozenset({"createFrame", "removeFrame"})
# After these the engine executes the next statement without waiting for the player.
_AUTO_NEXT = frozenset(
    {
        "bgm",
        "pixiPerform",
        "pixiInit",
        "miniAvatar",
        "label",
        "if",
        "setVar",
        "unlockCg",
        "unlockBgm",
        "filmMode",
        "playEffect",
        "setTransition",
        "applyStyle",
        "callSteam",
    }
)
# The characters that JavaScript's trim() removes; Python's strip() differs.
BLANKS = (
    "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_END = re.compile(r"(?<!\\);")
_OPTION = re.compile(r"(?<!\\)\|")
_TARGET = re.compile(r"(?<!\\):")
# Quirk: the dot in the parser's pattern matches any character, so `-toggle` is a vocal too.
_VOCAL = re.compile("[^\n\r\u2028\u2029](?:ogg|mp3|wav)")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_PREFIXED = re.compile(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)")

Value = str | bool | float
Argument = tuple[str, Value]


class Statement(NamedTuple):
    """One statement of a scene.

    Attributes:
        line, last_line: its first and last line, 1-based.
        command: a name of COMMANDS, or `comment` for a line with nothing before its `;`.
        head: the text before the first `:`, whitespace kept; None without a `:`.
        content: the text between `:` (or the start) and the first ` -`; `none` becomes empty.
        arguments: (name, value) in order; the speaker, and `next` of commands that do not wait for
            the player, come first.
        comment: the text after the `;` (the parser drops what follows a second `;`).
        is_ended: the statement ends with a `;`.
    """

    line: int
    last_line: int
    command: str
    head: str | None
    content: str
    arguments: tuple[Argument, ...]
    comment: str
    is_ended: bool

    @property
    def word(self) -> str:
        """The command or speaker as written, or the whole text without a `:`."""
        if self.head is not None:
            return self.head.strip(BLANKS)
        return self.content


class Option(NamedTuple):
    """One choice of `choose`: its text, and the label or scene that it leads to."""

    text: str
    target: str


def parse(text: str) -> list[Statement]:
    """Return the statements of a scene in order; blank lines are empty comments."""
    return list(statements(text)) or [_statement(1, 1, "")]


def statements(text: str, beginning: str = "") -> Iterator[Statement]:
    """Yield the statements of a scene in order, only those with this beginning."""
    for first, last, line in _joined_lines(text):
        if line.startswith(beginning):
            yield _statement(first, last, line)


def split_options(content: str) -> Iterator[Option]:
    """Yield the choices in the content of `choose`; a missing target is empty."""
    for choice in _OPTION.split(content):
        parts = _TARGET.split(choice)
        yield Option(parts[0], parts[1] if len(parts) > 1 else "")


def split_lines(text: str) -> list[str]:
    """Return a scene's lines as the engine splits them: every carriage return is dropped."""
    return text.replace("\r", "").split("\n")


def dropped_line(lines: Sequence[str]) -> int | None:
    """Return the number of the first line of a statement that the engine drops, or None.

    A backslash at the end of a line joins the next line to it. At the end of the last line there is
    nothing to join, and the parser drops the statement.
    """
    if not lines[-1].endswith("\\"):
        return None
    first = len(lines)
    while first > 1 and _is_joined_to_next(lines, first - 2):
        first -= 1
    return first if "".join(lines[first - 1 :]).strip(BLANKS + "\\") else None


def _joined_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (first line, last line, joined text) of each statement."""
    lines = split_lines(text)
    if "\\" not in text and not any(map(is_continuation, lines)):
        for number, line in enumerate(lines, 1):
            yield number, number, line
        return
    joined, first = "", 1
    for index, line in enumerate(lines):
        is_joined = _is_joined_to_next(lines, index)
        part = line[:-1] if is_joined and not _is_continued(lines, index) else line
        if joined:
            joined += _continuation(part)
        else:  # quirk: an empty line that is joined to the next is dropped
            joined, first = part, index + 1
        if not is_joined:
            yield first, index + 1, joined
            joined = ""


def _is_joined_to_next(lines: Sequence[str], index: int) -> bool:
    return lines[index].endswith("\\") or _is_continued(lines, index)


def _is_continued(lines: Sequence[str], index: int) -> bool:
    return index + 1 < len(lines) and is_continuation(lines[index + 1])


def is_continuation(line: str) -> bool:
    """Return whether a line continues the statement above it."""
    if not line.startswith(" ") or "-concat" in line:
        return False
    return line.lstrip(BLANKS).startswith(("|", "-"))


def _continuation(part: str) -> str:
    trimmed = part.strip(BLANKS)
    return f" {trimmed}" if trimmed.startswith("-") else trimmed


def _statement(first: int, last: int, line: str) -> Statement:
    code, comment, is_ended = _without_comment(line)
    if not code or not code.strip(BLANKS):
        return Statement(first, last, "comment", None, comment, (("next", True),), "", is_ended)
    before, colon, body = code.partition(":")
    if not colon:
        body = before
    command = before if before in COMMANDS else "say"
    arguments: tuple[Argument, ...] = ()
    if command == "say":
        if colon and before != "say":
            arguments = (("speaker", before),)
    elif command in _AUTO_NEXT:
        arguments = (("next", True),)
    cut = body.find(" -")
    if cut >= 0:
        arguments += tuple(map(_argument, filter(None, body[cut:].split(" -"))))
        body = body[:cut]
    head = before if colon else None
    content = _content(command, body.strip(BLANKS))
    return Statement(first, last, command, head, content, arguments, comment, is_ended)


def _without_comment(line: str) -> tuple[str, str, bool]:
    """Return (text before the first unescaped `;`, comment, whether there was a `;`)."""
    if ";" not in line:
        return line, "", False
    if "\\" not in line:
        code, _, rest = line.partition(";")
        return code, rest.partition(";")[0].strip(BLANKS) if rest else "", True
    parts = _END.split(line, 2)
    comment = parts[1].strip(BLANKS) if len(parts) > 1 else ""
    return parts[0].replace("\\;", ";"), comment, len(parts) > 1


def _content(command: str, raw: str) -> str:
    if raw in ("", "none"):
        return ""
    if command == "choose":
        return "|".join(f"{option.text}:{option.target}" for option in split_options(raw))
    return raw


def _argument(raw: str) -> Argument:
    name, equals, value = raw.partition("=")
    name, value = name.strip(BLANKS), value.strip(BLANKS)
    if _VOCAL.search(name.lower()):
        return "vocal", raw
    if not equals:
        return name, True
    if value in ("true", "false"):
        return name, value == "true"
    return name, _number(value, value)


def _number(value: str, otherwise: str) -> float | str:
    """Convert as JavaScript's Number() does (an empty string is 0); `otherwise` if it is NaN."""
    if not value:
        return 0.0
    if _DECIMAL.fullmatch(value):
        return float(value)
    if _PREFIXED.fullmatch(value):
        return _to_float(int(value, 0))
    if value.removeprefix("-" if value[0] == "-" else "+") == "Infinity":
        return float("-inf" if value[0] == "-" else "inf")
    return otherwise


def _to_float(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf")
