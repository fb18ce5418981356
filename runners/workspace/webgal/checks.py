"""All that can be said of a script, in the order of its lines (S4 §2.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from runners.workspace.errors import LintFailed, TooLarge
from runners.workspace.webgal.commands import check_commands
from runners.workspace.webgal.diagnostic import Diagnostic, DiagnosticText
from runners.workspace.webgal.grammar import Statement, statements
from runners.workspace.webgal.labels import check_labels
from runners.workspace.webgal.project import Project
from runners.workspace.webgal.resources import check_resources
from runners.workspace.webgal.style import check_style
from runners.workspace.webgal.syntax import check_syntax

MAX_LINES = 100_000  # of one script
MAX_DIAGNOSTICS = 20_000  # things that are wrong with one script; one with more is none


def check_script(text: str, project: Project) -> list[Diagnostic]:
    """Return what is wrong with a script by line; style beyond TOLD in all is only counted.

    Raises:
        TooLarge: It has more than LINES lines.
        LintFailed: More than TOLD things are wrong, style apart.
    """
    text = text.removeprefix("\ufeff")  # which a browser takes off before the engine sees it
    if text.count("\n") >= MAX_LINES:
        raise TooLarge(
            f"A script may have {MAX_LINES} lines at most.", details={"limit": MAX_LINES}
        )
    scene = [one for one in statements(text) if one.command != "comment"]
    wrong = list(islice(_faults(text, scene, project), MAX_DIAGNOSTICS + 1))
    if len(wrong) > MAX_DIAGNOSTICS:
        counts = Counter(one.kind for one in wrong)
        raise LintFailed(
            f"More than {MAX_DIAGNOSTICS} things are wrong: this is no WebGAL script.",
            details={"counted": dict(counts), "firstLine": min(one.line for one in wrong)},
        )
    return sorted(wrong + _style(text, scene, MAX_DIAGNOSTICS - len(wrong)), key=_place)


def _faults(text: str, scene: Sequence[Statement], project: Project) -> Iterator[Diagnostic]:
    return chain(
        check_syntax(text, scene),
        check_commands(scene, project),
        check_resources(scene, project),
        check_labels(scene, project),
    )


def _style(text: str, scene: Sequence[Statement], room: int) -> list[Diagnostic]:
    found = check_style(text, scene)
    told = list(islice(found, room))
    more = sum(1 for _ in found)
    if more:
        line = told[-1].line if told else 1
        told.append(
            Diagnostic(
                line,
                "style",
                DiagnosticText("more", {"count": more}),
                DiagnosticText("no_trailing"),
            )
        )
    return told


def _place(one: Diagnostic) -> tuple[int, int]:
    return one.line, ("syntax", "resource", "style").index(one.kind)
