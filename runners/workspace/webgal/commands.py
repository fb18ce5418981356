"""Check the words before `:` for misspelled commands.

The engine treats every unknown word as a speaker, so only a word that is unlikely to be a name is
an error.
"""

from __future__ import annotations

import re
from functools import lru_cache

from runners.workspace.webgal.diagnostic import Diagnostic, DiagnosticText, truncated
from runners.workspace.webgal.nearest import MAX_COMPARED_LENGTH, closest, fold_all
from runners.workspace.webgal.parser import COMMANDS, NEWER_COMMANDS, Statement
from runners.workspace.webgal.project import Project
from runners.workspace.webgal.script import SceneScript

_WORD = re.compile(r"[a-z][A-Za-z0-9_]*")
_MIXED = re.compile(r"[A-Za-z][A-Za-z0-9_]*[A-Z][A-Za-z0-9_]*")
_NAMES = fold_all(sorted(COMMANDS))
_WORD_AND_WIDE_COLON = re.compile(rf"({'|'.join(COMMANDS)})：")
LONG_WORD = 8  # letters; a word of this length is unlikely to be a name similar to a command


def check_word(statement: Statement, script: SceneScript, project: Project) -> Diagnostic | None:
    """Return the diagnostic of a `say` that was probably meant to be another command, or None."""
    if statement.head == "say":
        return None
    found = _check_wide_colon(statement)
    if found:
        return found
    if statement.head is None:
        return _check_text(statement)
    return _check_head(statement, script, project)


def _check_wide_colon(statement: Statement) -> Diagnostic | None:
    """Check for `changeBg：bg.png`: Chinese input methods type a full-width colon."""
    match = _WORD_AND_WIDE_COLON.match(statement.word)
    if match is None:
        return None
    values = {"word": match[1]}
    return _syntax(statement, DiagnosticText("wide_colon", values), DiagnosticText("colon", values))


def _check_text(statement: Statement) -> Diagnostic | None:
    """Check a statement without `:`; a single mixed-case word is hardly a sentence."""
    if not (_WORD.fullmatch(statement.content) and _MIXED.fullmatch(statement.content)):
        return None
    nearest, distance = nearest_command(statement.content)
    if not _is_meant(statement.content, distance):
        return None
    return _unknown(statement, DiagnosticText("meant", {"near": nearest}))


def _check_head(statement: Statement, script: SceneScript, project: Project) -> Diagnostic | None:
    word = statement.word
    if word in NEWER_COMMANDS:
        return None
    if word in COMMANDS:
        values = {"word": word}
        return _syntax(
            statement, DiagnosticText("blank", values), DiagnosticText("no_blank", values)
        )
    if not _WORD.fullmatch(word):
        return _check_capitalized(statement)
    nearest, distance = nearest_command(word)
    if _is_meant(word, distance):
        return _unknown(statement, DiagnosticText("meant", {"near": nearest}))
    if script.word_uses[word] + project.count_uses_in_other_scenes(word) > 1:
        return None
    return _unknown(
        statement, DiagnosticText("nearest", {"word": truncated(word), "near": nearest})
    )


def _check_capitalized(statement: Statement) -> Diagnostic | None:
    """Check for `ChangeBg`: to the engine a speaker, but unlikely to be a name."""
    if not _MIXED.fullmatch(statement.word):
        return None
    nearest, distance = nearest_command(statement.word)
    if distance or not _MIXED.fullmatch(nearest):
        return None
    message = DiagnosticText("speaker", {"word": statement.word})
    return Diagnostic(statement.line, "style", message, DiagnosticText("meant", {"near": nearest}))


def _is_meant(word: str, distance: int) -> bool:
    """Return whether a word was almost certainly meant to be the command at this edit distance.

    A word in mixed case may be further away than a long word in lower case; a short word in lower
    case may be a name.
    """
    if _MIXED.fullmatch(word):
        return distance <= min(3, max(1, len(word) // 3))
    return len(word) >= LONG_WORD and distance <= 2


def nearest_command(word: str) -> tuple[str, int]:
    """Return the command that is closest to a word, and the edit distance."""
    return _nearest(word[:MAX_COMPARED_LENGTH])


@lru_cache(maxsize=1024)
def _nearest(word: str) -> tuple[str, int]:
    return closest(word, _NAMES) or ("say", len(word))


def _unknown(statement: Statement, hint: DiagnosticText) -> Diagnostic:
    return _syntax(statement, DiagnosticText("unknown", {"word": truncated(statement.word)}), hint)


def _syntax(statement: Statement, message: DiagnosticText, hint: DiagnosticText) -> Diagnostic:
    return Diagnostic(statement.line, "syntax", message, hint)
