"""Words before `:` that are no commands and were probably meant to be.

The engine takes every unknown word for a speaker, so only what hardly names a person is an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from runners.workspace.webgal.diagnostic import Diagnostic, DiagnosticText, truncated
from runners.workspace.webgal.grammar import COMMANDS, NEWER_COMMANDS, Statement
from runners.workspace.webgal.nearest import MAX_COMPARED_LENGTH, closest, fold_all
from runners.workspace.webgal.project import Project

_WORD = re.compile(r"[a-z][A-Za-z0-9_]*")
_MIXED = re.compile(r"[A-Za-z][A-Za-z0-9_]*[A-Z][A-Za-z0-9_]*")
_NAMES = fold_all(sorted(COMMANDS))
_WORD_AND_WIDE_COLON = re.compile(rf"({'|'.join(COMMANDS)})：")
LONG = 8  # letters; a word as long is hardly a name that happens to be close to a command


def check_commands(statements: Sequence[Statement], project: Project) -> Iterator[Diagnostic]:
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
    return _syntax(one, DiagnosticText("wide_colon", said), DiagnosticText("colon", said))


def _of_text(one: Statement) -> Diagnostic | None:
    """Judge a statement without `:`; a mixed-case word alone is no sentence."""
    if not (_WORD.fullmatch(one.content) and _MIXED.fullmatch(one.content)):
        return None
    near, needed = nearest_command(one.content)
    if not _is_meant(one.content, needed):
        return None
    return _unknown(one, DiagnosticText("meant", {"near": near}))


def _of_head(one: Statement, uses: Counter[str], project: Project) -> Diagnostic | None:
    word = one.word
    if word in NEWER_COMMANDS:
        return None
    if word in COMMANDS:
        said = {"word": word}
        return _syntax(one, DiagnosticText("blank", said), DiagnosticText("no_blank", said))
    if not _WORD.fullmatch(word):
        return _of_capital(one)
    near, needed = nearest_command(word)
    if _is_meant(word, needed):
        return _unknown(one, DiagnosticText("meant", {"near": near}))
    if uses[word] + project.count_uses_in_other_scenes(word) > 1:
        return None
    return _unknown(one, DiagnosticText("nearest", {"word": truncated(word), "near": near}))


def _of_capital(one: Statement) -> Diagnostic | None:
    """Judge `ChangeBg`: by the rule a speaker, but hardly anybody's name."""
    if not _MIXED.fullmatch(one.word):
        return None
    near, needed = nearest_command(one.word)
    if needed or not _MIXED.fullmatch(near):
        return None
    said = DiagnosticText("speaker", {"word": one.word})
    return Diagnostic(one.line, "style", said, DiagnosticText("meant", {"near": near}))


def _is_meant(word: str, needed: int) -> bool:
    """Whether a word that is so many edits from a command was surely meant to be that command.

    A word in mixed case may be some edits away; a long one in small letters fewer; a short one in
    small letters can be anybody's name.
    """
    if _MIXED.fullmatch(word):
        return needed <= min(3, max(1, len(word) // 3))
    return len(word) >= LONG and needed <= 2


def nearest_command(word: str) -> tuple[str, int]:
    """Return the command with the fewest edits to a word, and how many."""
    return _nearest(word[:MAX_COMPARED_LENGTH])


@lru_cache(maxsize=1024)
def _nearest(word: str) -> tuple[str, int]:
    return closest(word, _NAMES) or ("say", len(word))


def _unknown(one: Statement, hint: DiagnosticText) -> Diagnostic:
    return _syntax(one, DiagnosticText("unknown", {"word": truncated(one.word)}), hint)


def _syntax(one: Statement, message: DiagnosticText, hint: DiagnosticText) -> Diagnostic:
    return Diagnostic(one.line, "syntax", message, hint)
