"""The files a scene names, and whether the game has them (S4 §2.1)."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from runners.workspace.webgal.diagnostic import Diagnostic, DiagnosticText, truncated
from runners.workspace.webgal.grammar import BLANKS, Statement, split_options
from runners.workspace.webgal.nearest import closest, fold, fold_all
from runners.workspace.webgal.project import Project

# Where each kind of file lies; the first folder is the one that messages name.
FOLDERS = {
    "background": ("game/background",),
    "figure": ("game/figure",),
    "bgm": ("game/bgm",),
    "vocal": ("game/vocal", "game/bgm"),
    "video": ("game/video",),
    "scene": ("game/scene",),
}
_KINDS = {
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
MAX_COMPARED = 100_000  # names that one check compares for hints; beyond it, hints are general


class FileReference(NamedTuple):
    """A file as a statement names it: its kind (of FOLDERS) and its path from that folder."""

    kind: str
    name: str


def file_references(one: Statement) -> Iterator[FileReference]:
    """Yield the files that a statement names; not what a variable decides, nor URLs."""
    if one.command in _KINDS:
        yield from _named(_KINDS[one.command], one.content)
    elif one.command == "choose":
        for option in split_options(one.content):
            if "." in option.target:
                yield from _named("scene", option.target)
    elif one.command == "say":
        for name, value in one.arguments:
            if name == "vocal" and isinstance(value, str):
                yield from _named("vocal", value)


def _named(kind: str, raw: str) -> Iterator[FileReference]:
    name = raw.strip(BLANKS)
    if name in ("", "none") or is_dynamic(name) or "http://" in name or "https://" in name:
        return
    yield FileReference(kind, name)


def is_dynamic(name: str) -> bool:
    """Whether a variable (`{name}`) or an escape makes the name while the game runs."""
    return "\\" in name or ("{" in name and "}" in name)


def check_resources(statements: Sequence[Statement], project: Project) -> Iterator[Diagnostic]:
    """Yield every file that is named and not there."""
    hints = _Hints(project)
    there: dict[FileReference, bool] = {}
    for one in statements:
        for named in file_references(one):
            if named not in there:
                there[named] = _is_there(named, project)
            if not there[named]:
                path = truncated(f"{FOLDERS[named.kind][0]}/{named.name}")
                told = DiagnosticText("no_file", {"kind": DiagnosticText(named.kind), "path": path})
                yield Diagnostic(one.line, "resource", told, hints.of(named))


def _is_there(named: FileReference, project: Project) -> bool:
    for folder in FOLDERS[named.kind]:
        for name in (named.name, named.name.partition("?")[0]):
            place, path = _place_of(folder, name)
            if path in project.files_in(place):
                return True
    return False


def _place_of(folder: str, name: str) -> tuple[str, str]:
    """Return (the folder below `game`, the path in it), `..` resolved as a browser does."""
    path = posixpath.normpath(f"{folder}/{name}")
    parts = path.split("/", 2)
    if len(parts) < 3 or parts[0] != "game":
        return folder, ""  # out of the game, where it has no files
    return f"{parts[0]}/{parts[1]}", parts[2]


class _Hints:
    """What to write for a file that is not there; each name is looked for once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._left = MAX_COMPARED
        self._known: dict[FileReference, DiagnosticText] = {}
        self._files: dict[str, tuple[dict[str, str], dict[str, str]]] = {}

    def of(self, named: FileReference) -> DiagnosticText:
        if named not in self._known:
            near = self._nearest(named)
            self._known[named] = (
                DiagnosticText("near_file", {"near": near}) if near else DiagnosticText("any_file")
            )
        return self._known[named]

    def _nearest(self, named: FileReference) -> str | None:
        """Return the file of the same name in another case, folder or format, or the closest."""
        if named.kind not in self._files:
            self._files[named.kind] = self._files_of(named.kind)
        files, stems = self._files[named.kind]
        alike = stems.get(fold(_stem(named.name)))
        if alike:
            return alike
        if self._left <= 0:
            return None
        self._left -= len(files) + 1
        near = closest(named.name, files, at_most=max(1, len(named.name) // 3))
        return near and near[0]

    def _files_of(self, kind: str) -> tuple[dict[str, str], dict[str, str]]:
        """Return the files of a kind by their folded paths, and by their folded stems."""
        paths = [one for at in FOLDERS[kind] for one in sorted(self._project.files_in(at))]
        stems = {fold(_stem(path)): path for path in reversed(paths)}
        return fold_all(paths), stems


def _stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]
