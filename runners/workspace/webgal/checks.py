"""Check a script and return its diagnostics in the order of the lines (S4 §2.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from runners.workspace.errors import LintFailed, TooLarge
from runners.workspace.webgal.commands import check_commands
from runners.workspace.webgal.diagnostic import Diagnostic, DiagnosticText
from runners.workspace.webgal.labels import check_labels
from runners.workspace.webgal.parser import Statement, statements
from runners.workspace.webgal.project import Project
from runners.workspace.webgal.resources import check_resources
from runners.workspace.webgal.style import check_style
from runners.workspace.webgal.syntax_checks import check_syntax

MAX_LINES = 100_000  # of one script
MAX_DIAGNOSTICS = 20_000  # of one script; a text with more is not a WebGAL script


def check_script(text: str, project: Project) -> list[Diagnostic]:
    """Return the diagnostics of a script, by line.

    Of more than MAX_DIAGNOSTICS, those of kind style that exceed the limit are only counted.

    Raises:
        TooLarge: It has more than MAX_LINES lines.
        LintFailed: There are more than MAX_DIAGNOSTICS errors other than style.
    """
    text = text.removeprefix("\ufeff")  # a browser removes the BOM before the engine reads the text
    if text.count("\n") >= MAX_LINES:
        raise TooLarge(
            f"The script has more than {MAX_LINES} lines, the limit.", details={"limit": MAX_LINES}
        )
    parsed = [one for one in statements(text) if one.command != "comment"]
    errors = list(islice(_errors(text, parsed, project), MAX_DIAGNOSTICS + 1))
    if len(errors) > MAX_DIAGNOSTICS:
        counts = Counter(one.kind for one in errors)
        raise LintFailed(
            f"There are more than {MAX_DIAGNOSTICS} errors: this is not a WebGAL script.",
            details={"counted": dict(counts), "firstLine": min(one.line for one in errors)},
        )
    return sorted(errors + _style(text, parsed, MAX_DIAGNOSTICS - len(errors)), key=_sort_key)


def _errors(text: str, parsed: Sequence[Statement], project: Project) -> Iterator[Diagnostic]:
    return chain(
        check_syntax(text, parsed),
        check_commands(parsed, project),
        check_resources(parsed, project),
        check_labels(parsed, project),
    )


def _style(text: str, parsed: Sequence[Statement], limit: int) -> list[Diagnostic]:
    found = check_style(text, parsed)
    diagnostics = list(islice(found, limit))
    more = sum(1 for _ in found)
    if more:
        line = diagnostics[-1].line if diagnostics else 1
        diagnostics.append(
            Diagnostic(
                line,
                "style",
                DiagnosticText("more", {"count": more}),
                DiagnosticText("no_trailing"),
            )
        )
    return diagnostics


def _sort_key(one: Diagnostic) -> tuple[int, int]:
    return one.line, ("syntax", "resource", "style").index(one.kind)
