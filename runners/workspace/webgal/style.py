"""Check the style of a script: faults that do not change what the scene does."""

from __future__ import annotations

from collections.abc import Iterator

from runners.workspace.webgal.diagnostic import Diagnostic, DiagnosticText
from runners.workspace.webgal.parser import BLANKS, Statement, is_continuation
from runners.workspace.webgal.script import SceneScript


def check_style(script: SceneScript) -> Iterator[Diagnostic]:
    """Yield diagnostics for tabs, trailing whitespace, and continuation lines after a `;`."""
    for number, line in enumerate(script.lines, 1):
        if "\t" in line:
            yield Diagnostic(number, "style", DiagnosticText("tab"), DiagnosticText("no_tab"))
        if line and line[-1] in BLANKS:
            yield Diagnostic(
                number, "style", DiagnosticText("trailing"), DiagnosticText("no_trailing")
            )
    if any(map(is_continuation, script.lines)):
        for statement in script:
            if _continues_after_the_end(statement, script):
                yield Diagnostic(
                    statement.last_line,
                    "style",
                    DiagnosticText("after_end"),
                    DiagnosticText("end_last"),
                )


def _continues_after_the_end(statement: Statement, script: SceneScript) -> bool:
    if statement.last_line == statement.line or not statement.is_ended:
        return False
    above = script.lines[statement.line - 1 : statement.last_line - 1]
    return is_continuation(script.lines[statement.last_line - 1]) and any(
        ";" in line.replace("\\;", "") for line in above
    )
