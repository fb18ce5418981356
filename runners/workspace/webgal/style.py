"""Check the style of a script: faults that do not change what the scene does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runners.workspace.webgal.diagnostic import Diagnostic, DiagnosticText
from runners.workspace.webgal.parser import BLANKS, Statement, is_continuation, split_lines


def check_style(text: str, statements: Sequence[Statement]) -> Iterator[Diagnostic]:
    """Yield diagnostics for tabs, trailing whitespace, and continuation lines after a `;`."""
    lines = split_lines(text)
    for number, line in enumerate(lines, 1):
        if "\t" in line:
            yield Diagnostic(number, "style", DiagnosticText("tab"), DiagnosticText("no_tab"))
        if line and line[-1] in BLANKS:
            yield Diagnostic(
                number, "style", DiagnosticText("trailing"), DiagnosticText("no_trailing")
            )
    for statement in statements:
        if statement.last_line > statement.line and statement.is_ended:
            yield from _after_the_end(statement, lines)


def _after_the_end(statement: Statement, lines: Sequence[str]) -> Iterator[Diagnostic]:
    above = lines[statement.line - 1 : statement.last_line - 1]
    if any(";" in line.replace("\\;", "") for line in above) and is_continuation(
        lines[statement.last_line - 1]
    ):
        yield Diagnostic(
            statement.last_line, "style", DiagnosticText("after_end"), DiagnosticText("end_last")
        )
