"""The game that a script belongs to, as far as checks ask for it: files, and its other scenes."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from functools import cached_property

from runners.workspace.errors import (
    BadArguments,
    PathDenied,
    PathNotFound,
    TooLarge,
    WorkspaceFailed,
    WorkspaceTimeout,
)
from runners.workspace.files.sandbox import Sandbox

SCENES = "game/scene"
MAX_FILES = 100_000  # below one folder
# Read of the other scenes at most; beyond it, what they say is not counted.
SCENES_BYTES, SCENE_BYTES = 32 * 1024 * 1024, 1024 * 1024
_HEAD = re.compile(r"^([a-z][A-Za-z0-9_]*):", re.MULTILINE)
_LABEL = re.compile(r"^label:([^;\r\n]*)", re.MULTILINE)


class Project:
    """A game's files and scenes, each looked at when first asked for.

    Args:
        script: the path of the script that is checked, if it has one.
        draft: its text, if it has none; the scene that it is the next version of is then no other.
        until: `time.monotonic()` value after which WorkspaceTimeout is raised.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        script: str | None = None,
        deadline: float | None = None,
        *,
        draft: str = "",
    ) -> None:
        self._until = deadline
        self._sandbox = sandbox
        self._script = script
        self._draft = draft
        self._folders: dict[str, frozenset[str]] = {}

    def files_in(self, folder: str) -> frozenset[str]:
        """Return the paths of all files below a folder, from it; none where there is no folder."""
        if folder not in self._folders:
            self._folders[folder] = frozenset(list_files_below(self._sandbox, folder, self._until))
        return self._folders[folder]

    def count_uses_in_other_scenes(self, word: str) -> int:
        """Return how many statements of the other scenes have a word before `:`."""
        return self._other_words[word]

    def scene_of_label(self, name: str) -> str | None:
        """Return the first other scene that has a label of this name."""
        return self._scenes_by_label.get(name)

    @cached_property
    def _scenes_by_label(self) -> dict[str, str]:
        labels: dict[str, str] = {}
        for scene, text in self._other_scenes.items():
            for found in _LABEL.finditer(text):
                labels.setdefault(found[1].partition(" -")[0].strip(), scene)
        return labels

    @cached_property
    def _other_words(self) -> Counter[str]:
        words: Counter[str] = Counter()
        for text in self._other_scenes.values():
            words.update(_HEAD.findall(text))
        return words

    @cached_property
    def _other_scenes(self) -> dict[str, str]:
        """The texts of the other scenes by their paths in the scenes' folder."""
        texts, left = {}, SCENES_BYTES
        for scene in sorted(self.files_in(SCENES)):
            path = f"{SCENES}/{scene}"
            if left <= 0 or path == self._script or not scene.lower().endswith(".txt"):
                continue
            if self._until is not None and time.monotonic() > self._until:
                raise WorkspaceTimeout("The game's other scenes could not be read in time.")
            try:
                data = self._sandbox.read(path, limit=SCENE_BYTES)
            except WorkspaceFailed:
                continue  # what cannot be read says nothing
            left -= len(data)
            texts[scene] = data.decode(errors="replace")
        if (own := _saved_version(self._draft, texts)) is not None:
            del texts[own]
        return texts


def _saved_version(draft: str, scenes: Mapping[str, str]) -> str | None:
    """Return the scene that a text is most likely the next version of: the one with which it has
    most lines in common, if they are more than half of the shorter one's.
    """
    lines = _lines_of(draft)
    best, most = None, 0
    for scene, text in scenes.items() if lines else ():
        others = _lines_of(text)
        common = len(lines & others)
        if common > most and 2 * common > min(len(lines), len(others)):
            best, most = scene, common
    return best


def _lines_of(text: str) -> set[str]:
    return {line for line in map(str.strip, text.splitlines()) if line}


def list_files_below(sandbox: Sandbox, folder: str, deadline: float | None = None) -> list[str]:
    """Return the files below a folder, sorted; none where no folder is that may be entered.

    Args:
        until: `time.monotonic()` value after which it gives up.

    Raises:
        WorkspaceTimeout: It gave up.
        TooLarge: They are more than a game has.
    """
    try:
        files = sandbox.find(folder, deadline=deadline).files
    except (PathNotFound, PathDenied, BadArguments):
        return []
    if len(files) > MAX_FILES:
        raise TooLarge(
            f"There are more than {MAX_FILES} files below {folder}.",
            details={"path": folder, "entries": len(files), "limit": MAX_FILES},
        )
    return sorted(files)
