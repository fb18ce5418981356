"""Check a script and return its diagnostics in the order of the lines (S4 §2.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from runners.workspace.errors import LintFailed, TooLarge
from runners.workspace.webgal.commands import check_word
from runners.workspace.webgal.diagnostic import Diagnostic, DiagnosticText
from runners.workspace.webgal.labels import JUMPS, LabelCheck
from runners.workspace.webgal.parser import dropped_line
from runners.workspace.webgal.project import Project
from runners.workspace.webgal.resources import ResourceCheck
from runners.workspace.webgal.script import SceneScript
from runners.workspace.webgal.style import check_style
from runners.workspace.webgal.syntax_checks import JSON_COMMANDS, check_end, check_json

MAX_LINES = 100_000  # of one script
MAX_DIAGNOSTICS = 20_000  # of one script; a text with more is not a WebGAL script


def check_script(text: str, project: Project, language: str) -> list[dict[str, Any]]:
    """Return the diagnostics of a script by line, in the form of S4 §2.2.

    Of more than MAX_DIAGNOSTICS, those of kind style that exceed the limit are only counted.

    Args:
        language: of the messages, ZH or EN.

    Raises:
        TooLarge: It has more than MAX_LINES lines.
        LintFailed: There are more than MAX_DIAGNOSTICS errors other than style.
    """
    text = text.removeprefix("\ufeff")  # a browser removes the BOM before the engine reads the text
    if text.count("\n") >= MAX_LINES:
        raise TooLarge(
            f"The script has more than {MAX_LINES} lines, the limit.", details={"limit": MAX_LINES}
        )
    script = SceneScript(text)
    errors = [
        one.as_dict(language) for one in islice(_errors(script, project), MAX_DIAGNOSTICS + 1)
    ]
    if len(errors) > MAX_DIAGNOSTICS:
        counts = Counter(one["kind"] for one in errors)
        raise LintFailed(
            f"There are more than {MAX_DIAGNOSTICS} errors: this is not a WebGAL script.",
            details={"counted": dict(counts), "firstLine": min(one["line"] for one in errors)},
        )
    style = [one.as_dict(language) for one in _style(script, MAX_DIAGNOSTICS - len(errors))]
    return sorted(errors + style, key=_sort_key)


def _errors(script: SceneScript, project: Project) -> Iterator[Diagnostic]:
    labels, resources = LabelCheck(script, project), ResourceCheck(project)
    for statement in script:
        if not statement.is_ended:
            yield from check_end(statement, script.lines)
        if statement.command in JSON_COMMANDS:
            yield from check_json(statement)
        if statement.command == "say" and (misspelled := check_word(statement, script, project)):
            yield misspelled
        yield from resources.check(statement)
        if statement.command in JUMPS:
            yield from labels.check(statement)
    dropped = dropped_line(script.lines)
    if dropped is not None:
        yield Diagnostic(dropped, "syntax", DiagnosticText("lost"), DiagnosticText("no_backslash"))


def _style(script: SceneScript, limit: int) -> Iterator[Diagnostic]:
    """Yield diagnostics of kind style up to a limit, and one with the number of those beyond it."""
    line = 1
    found = check_style(script)
    for one in islice(found, limit):
        line = one.line
        yield one
    more = sum(1 for _ in found)
    if more:
        yield Diagnostic(
            line, "style", DiagnosticText("more", {"count": more}), DiagnosticText("no_trailing")
        )


def _sort_key(one: dict[str, Any]) -> tuple[int, int]:
    return one["line"], ("syntax", "resource", "style").index(one["kind"])
