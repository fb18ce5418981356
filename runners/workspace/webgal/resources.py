"""Check that the files a scene refers to exist in the game (S4 §2.1)."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from runners.workspace.webgal.diagnostic import Diagnostic, DiagnosticText, truncated
from runners.workspace.webgal.nearest import closest, fold, fold_all
from runners.workspace.webgal.parser import BLANKS, Statement, split_options
from runners.workspace.webgal.project import Project

# The folders of each kind of file; messages name the first one.
FOLDERS = {
    "background": ("game/background",),
    "figure": ("game/figure",),
    "bgm": ("game/bgm",),
    "vocal": ("game/vocal", "game/bgm"),
    "video": ("game/video",),
    "scene": ("game/scene",),
}
_KIND_BY_COMMAND = {
    "changeBg": "background",
    "unlockCg": "background",
    "changeFigure": "figure",
    "miniAvatar": "figure",
    "bgm": "bgm",
    "unlockBgm": "bgm",
    "playEffect": "vocal",
    "playVideo": "video",
    "changeScene": "scene",
    "callScene": "scene",
}
MAX_COMPARED = 100_000  # comparisons of names for the hints of one check; then hints are generic


# A file that a statement refers to: its kind (of FOLDERS) and the path from that folder. A plain
# tuple, which garbage collections skip: a script may have many.
FileReference = tuple[str, str]


def file_references(statement: Statement) -> Iterator[FileReference]:
    """Yield the files that a statement refers to, without URLs and names from variables."""
    if statement.command in _KIND_BY_COMMAND:
        yield from _references(_KIND_BY_COMMAND[statement.command], statement.content)
    elif statement.command == "choose":
        for option in split_options(statement.content):
            if "." in option.target:
                yield from _references("scene", option.target)
    elif statement.command == "say":
        for name, value in statement.arguments:
            if name == "vocal" and isinstance(value, str):
                yield from _references("vocal", value)


def _references(kind: str, raw: str) -> Iterator[FileReference]:
    name = raw.strip(BLANKS)
    if name in ("", "none") or is_dynamic(name) or "http://" in name or "https://" in name:
        return
    yield kind, name


def is_dynamic(name: str) -> bool:
    """Return whether a variable (`{name}`) or an escape determines the name at runtime."""
    return "\\" in name or ("{" in name and "}" in name)


def _resolve(folder: str, name: str) -> tuple[str, str]:
    """Return (folder below `game`, path in it), with `..` resolved as in a browser."""
    path = posixpath.normpath(f"{folder}/{name}")
    parts = path.split("/", 2)
    if len(parts) < 3 or parts[0] != "game":
        return folder, ""  # outside of the game, so there is no such file
    return f"{parts[0]}/{parts[1]}", parts[2]


class ResourceCheck:
    """Checks the files that a script's statements refer to; each name is compared only once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._comparisons_left = MAX_COMPARED
        self._exists: dict[FileReference, bool] = {}
        self._hints: dict[FileReference, DiagnosticText] = {}
        self._files: dict[str, tuple[dict[str, str], dict[str, str]]] = {}

    def check(self, statement: Statement) -> Iterator[Diagnostic]:
        """Yield a diagnostic for every reference to a file that does not exist."""
        for reference in file_references(statement):
            if reference not in self._exists:
                self._exists[reference] = self._is_file(*reference)
            if not self._exists[reference]:
                if reference not in self._hints:
                    self._hints[reference] = self._hint(*reference)
                kind, name = reference
                path = truncated(f"{FOLDERS[kind][0]}/{name}")
                message = DiagnosticText("no_file", {"kind": DiagnosticText(kind), "path": path})
                yield Diagnostic(statement.line, "resource", message, self._hints[reference])

    def _is_file(self, kind: str, name: str) -> bool:
        for folder in FOLDERS[kind]:
            for candidate in (name, name.partition("?")[0]):
                resolved_folder, path = _resolve(folder, candidate)
                if path in self._project.files_in(resolved_folder):
                    return True
        return False

    def _hint(self, kind: str, name: str) -> DiagnosticText:
        near = self._nearest(kind, name)
        return DiagnosticText("near_file", {"near": near}) if near else DiagnosticText("any_file")

    def _nearest(self, kind: str, name: str) -> str | None:
        """Return a file of the same name with another case, folder or format, else the closest."""
        if kind not in self._files:
            self._files[kind] = self._files_of(kind)
        files, stems = self._files[kind]
        same_stem = stems.get(fold(_stem(name)))
        if same_stem:
            return same_stem
        if self._comparisons_left <= 0:
            return None
        self._comparisons_left -= len(files) + 1
        near = closest(name, files, max_edits=max(1, len(name) // 3))
        return near and near[0]

    def _files_of(self, kind: str) -> tuple[dict[str, str], dict[str, str]]:
        """Return a kind's files by folded path, and by folded name without extension."""
        paths = [path for at in FOLDERS[kind] for path in sorted(self._project.files_in(at))]
        stems = {fold(_stem(path)): path for path in reversed(paths)}
        return fold_all(paths), stems


def _stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]
