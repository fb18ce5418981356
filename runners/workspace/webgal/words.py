"""Words before `:` that are no commands and were probably meant to be.

The engine takes every unknown word for a speaker, so only what hardly names a person is an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from runners.workspace.webgal.diagnostic import Diagnostic, Said, shown
from runners.workspace.webgal.grammar import COMMANDS, NEWER_COMMANDS, Statement
from runners.workspace.webgal.nearest import closest, edits, folded
from runners.workspace.webgal.project import Project

_WORD = re.compile(r"[a-z][A-Za-z0-9_]*")
_MIXED = re.compile(r"[A-Za-z][A-Za-z0-9_]*[A-Z][A-Za-z0-9_]*")
_NAMES = tuple(sorted(COMMANDS))
_WORD_AND_WIDE_COLON = re.compile(rf"({'|'.join(sorted(_NAMES, key=len, reverse=True))})：")
LONG = 8  # letters; a word as long is hardly a name that happens to be close to a command


def check_words(statements: Sequence[Statement], project: Project) -> Iterator[Diagnostic]:
    """Yield what is wrong with commands' names."""
    uses = Counter(one.word for one in statements if one.head is not None)
    for one in statements:
        if one.command != "say" or one.head == "say":
            continue
        found = _of_wide_colon(one)
        if not found:
            found = _of_text(one) if one.head is None else _of_head(one, uses, project)
        if found:
            yield found


def _of_wide_colon(one: Statement) -> Diagnostic | None:
    """Judge `changeBg：bg.png`, which an input method for Chinese makes of a command."""
    wide = _WORD_AND_WIDE_COLON.match(one.word)
    if wide is None:
        return None
    said = {"word": wide[1]}
    return _syntax(one, Said("wide_colon", said), Said("colon", said))


def _of_text(one: Statement) -> Diagnostic | None:
    """Judge a statement without `:`; a mixed-case word alone is no sentence."""
    if not (_WORD.fullmatch(one.content) and _MIXED.fullmatch(one.content)):
        return None
    near = close_command(one.content)
    return _unknown(one, Said("meant", {"near": near})) if near else None


def _of_head(one: Statement, uses: Counter[str], project: Project) -> Diagnostic | None:
    word = one.word
    if word in NEWER_COMMANDS:
        return None
    if word in COMMANDS:
        said = {"word": word}
        return _syntax(one, Said("blank", said), Said("no_blank", said))
    if not _WORD.fullmatch(word):
        return _of_capital(one)
    near = close_command(word)
    if near:
        return _unknown(one, Said("meant", {"near": near}))
    if uses[word] + project.uses_elsewhere(word) > 1:
        return None
    facts = {"word": shown(word), "near": nearest_command(word)}
    is_near = edits(folded(word), folded(facts["near"])) <= max(1, len(word) // 4)
    return _unknown(one, Said("meant" if is_near else "nearest", facts))


def _of_capital(one: Statement) -> Diagnostic | None:
    """Judge `ChangeBg`: by the rule a speaker, but hardly anybody's name."""
    if not _MIXED.fullmatch(one.word):
        return None
    near = closest(one.word, _NAMES, at_most=0)
    if near is None or not _MIXED.fullmatch(near):
        return None
    said = Said("speaker", {"word": one.word})
    return Diagnostic(one.line, "style", said, Said("meant", {"near": near}))


@lru_cache(maxsize=1024)
def close_command(word: str) -> str | None:
    """Return the command that a word was surely meant to be, or None.

    A word in mixed case may be some edits away; a long one in small letters fewer; a short one in
    small letters can be anybody's name.
    """
    if _MIXED.fullmatch(word):
        return closest(word, _NAMES, at_most=min(3, max(1, len(word) // 3)))
    return closest(word, _NAMES, at_most=2) if len(word) >= LONG else None


@lru_cache(maxsize=1024)
def nearest_command(word: str) -> str:
    """Return the command with the fewest edits to a word."""
    return closest(word, _NAMES) or _NAMES[0]


def _unknown(one: Statement, hint: Said) -> Diagnostic:
    return _syntax(one, Said("unknown", {"word": shown(one.word)}), hint)


def _syntax(one: Statement, message: Said, hint: Said) -> Diagnostic:
    return Diagnostic(one.line, "syntax", message, hint)
