"""What an editor would mend: it changes nothing of what the scene does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runners.workspace.webgal.diagnostic import Diagnostic, DiagnosticText
from runners.workspace.webgal.grammar import BLANKS, Statement, is_continuation, split_lines


def check_style(text: str, statements: Sequence[Statement]) -> Iterator[Diagnostic]:
    """Yield tabs, blanks at line ends, and lines that go on after their statement's `;`."""
    lines = split_lines(text)
    for number, line in enumerate(lines, 1):
        if "\t" in line:
            yield Diagnostic(number, "style", DiagnosticText("tab"), DiagnosticText("no_tab"))
        if line and line[-1] in BLANKS:
            yield Diagnostic(
                number, "style", DiagnosticText("trailing"), DiagnosticText("no_trailing")
            )
    for one in statements:
        if one.last_line > one.line and one.is_ended:
            yield from _after_the_end(one, lines)


def _after_the_end(one: Statement, lines: Sequence[str]) -> Iterator[Diagnostic]:
    above = lines[one.line - 1 : one.last_line - 1]
    if any(";" in line.replace("\\;", "") for line in above) and is_continuation(
        lines[one.last_line - 1]
    ):
        yield Diagnostic(
            one.last_line, "style", DiagnosticText("after_end"), DiagnosticText("end_last")
        )
