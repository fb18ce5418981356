"""Check that the labels a scene jumps to exist; the engine looks them up in the same scene only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from runners.workspace.webgal.diagnostic import Diagnostic, DiagnosticText, truncated
from runners.workspace.webgal.nearest import closest, fold_all
from runners.workspace.webgal.parser import BLANKS, Statement, split_options
from runners.workspace.webgal.project import Project
from runners.workspace.webgal.resources import is_dynamic

MAX_COMPARED = 50_000  # comparisons of names for the hints of one check; then hints are generic


def check_labels(statements: Sequence[Statement], project: Project) -> Iterator[Diagnostic]:
    """Yield a diagnostic for every jump to a label that the scene does not have."""
    names = {statement.content for statement in statements if statement.command == "label"}
    labels = fold_all(sorted(names))
    hints: dict[str, DiagnosticText] = {}
    for statement in statements:
        for name in _named_labels(statement):
            if name in names:
                continue
            if name not in hints:
                can_compare = (len(hints) + 1) * len(labels) <= MAX_COMPARED
                hints[name] = _hint(name, labels if can_compare else {}, project)
            message = DiagnosticText("no_label", {"name": truncated(name)})
            yield Diagnostic(statement.line, "resource", message, hints[name])


def _named_labels(statement: Statement) -> Iterator[str]:
    names: list[str] = []
    if statement.command == "jumpLabel":
        names = [statement.content]
    elif statement.command == "choose":
        targets = (option.target.strip(BLANKS) for option in split_options(statement.content))
        names = [target for target in targets if "." not in target]
    for name in names:
        if name not in ("", "none") and not is_dynamic(name):
            yield name


def _hint(name: str, labels: Mapping[str, str], project: Project) -> DiagnosticText:
    near = closest(name, labels, max_edits=max(1, len(name) // 3))
    if near:
        return DiagnosticText("near_label", {"near": truncated(near[0])})
    scene = project.scene_of_label(name)
    if scene:
        return DiagnosticText("other_scene", {"name": truncated(name), "scene": scene})
    return DiagnosticText("add_label", {"name": truncated(name)})
