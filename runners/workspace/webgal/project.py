"""The game that a script belongs to: its files and other scenes, read when a check needs them."""

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
# Limits for reading the other scenes; scenes beyond the total are ignored.
SCENES_BYTES, SCENE_BYTES = 32 * 1024 * 1024, 1024 * 1024
_HEAD = re.compile(r"^([a-z][A-Za-z0-9_]*):", re.MULTILINE)
_LABEL = re.compile(r"^label:([^;\r\n]*)", re.MULTILINE)


class Project:
    """A game's files and scenes, read lazily and cached.

    Args:
        script: path of the script that is checked, if it is a file.
        deadline: `time.monotonic()` value after which WorkspaceTimeout is raised.
        draft: the script's text, if it is not a file. The scene that it most likely replaces is
            then not counted among the other scenes.
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
        """Return the paths of all files below a folder, relative to it; empty without a folder."""
        if folder not in self._folders:
            self._folders[folder] = frozenset(list_files_below(self._sandbox, folder, self._until))
        return self._folders[folder]

    def count_uses_in_other_scenes(self, word: str) -> int:
        """Return how many statements of other scenes have this word before `:`."""
        return self._other_words[word]

    def scene_of_label(self, name: str) -> str | None:
        """Return the first other scene that has this label, or None."""
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
        """The texts of the other scenes, by path relative to the folder of scenes."""
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
                continue  # unreadable scenes are ignored
            left -= len(data)
            texts[scene] = data.decode(errors="replace")
        if (own := _saved_version(self._draft, texts)) is not None:
            del texts[own]
        return texts


def _saved_version(draft: str, scenes: Mapping[str, str]) -> str | None:
    """Return the scene that a draft most likely replaces, or None.

    It is the scene with the most lines in common, if these are more than half of the lines of the
    shorter text.
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
    """Return the files below a folder, sorted; empty if it does not exist or is forbidden.

    Args:
        deadline: `time.monotonic()` value.

    Raises:
        WorkspaceTimeout: The deadline has passed.
        TooLarge: There are more than MAX_FILES.
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
