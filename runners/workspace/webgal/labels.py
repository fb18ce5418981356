"""Check that the labels a scene jumps to exist; the engine looks them up in the same scene only."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from runners.workspace.webgal.diagnostic import Diagnostic, DiagnosticText, truncated
from runners.workspace.webgal.nearest import closest, fold_all
from runners.workspace.webgal.parser import BLANKS, Statement, split_options
from runners.workspace.webgal.project import Project
from runners.workspace.webgal.resources import is_dynamic
from runners.workspace.webgal.script import SceneScript

JUMPS = frozenset({"jumpLabel", "choose"})  # the commands that name labels
MAX_COMPARED = 50_000  # comparisons of names for the hints of one check; then hints are generic


class LabelCheck:
    """Checks the jumps of a script's statements; each missing name is compared only once."""

    def __init__(self, script: SceneScript, project: Project) -> None:
        self._script, self._project = script, project
        self._hints: dict[str, DiagnosticText] = {}

    def check(self, statement: Statement) -> Iterator[Diagnostic]:
        """Yield a diagnostic for every missing label that a statement of JUMPS names."""
        for name in _named_labels(statement):
            if name not in self._script.labels:
                if name not in self._hints:
                    self._hints[name] = self._hint(name)
                message = DiagnosticText("no_label", {"name": truncated(name)})
                yield Diagnostic(statement.line, "resource", message, self._hints[name])

    @cached_property
    def _folded(self) -> dict[str, str]:
        return fold_all(sorted(self._script.labels))

    def _hint(self, name: str) -> DiagnosticText:
        can_compare = (len(self._hints) + 1) * len(self._folded) <= MAX_COMPARED
        labels = self._folded if can_compare else {}
        near = closest(name, labels, max_edits=max(1, len(name) // 3))
        if near:
            return DiagnosticText("near_label", {"near": truncated(near[0])})
        scene = self._project.scene_of_label(name)
        if scene:
            return DiagnosticText("other_scene", {"name": truncated(name), "scene": scene})
        return DiagnosticText("add_label", {"name": truncated(name)})


def _named_labels(statement: Statement) -> Iterator[str]:
    if statement.command == "jumpLabel":
        names = [statement.content]
    else:
        targets = (option.target.strip(BLANKS) for option in split_options(statement.content))
        names = [target for target in targets if "." not in target]
    for name in names:
        if name not in ("", "none") and not is_dynamic(name):
            yield name
