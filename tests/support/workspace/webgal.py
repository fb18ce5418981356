"""Games for tests of scripts: a copy of the sample game, or a game with files of the test."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from runners.workspace.workspace import ProjectWorkspace
from tests.support.workspace.webgal_media import GAME
from tests.support.workspace.workspace_calls import call_tool, workspace_at


def sample_game(folder: Path, **policy: Any) -> ProjectWorkspace:
    """Return a workspace with a copy of the sample game."""
    workspace = workspace_at(folder, **policy)
    shutil.copytree(GAME, workspace.root, dirs_exist_ok=True)
    return workspace


def game_with(folder: Path, files: Iterable[str] = (), **policy: Any) -> ProjectWorkspace:
    """Return a workspace whose game has these empty files, by their paths below `game`."""
    workspace = workspace_at(folder, **policy)
    (workspace.root / "game").mkdir(exist_ok=True)
    for name in files:
        path = workspace.root / "game" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return workspace


def diagnostics(game: ProjectWorkspace, content: str) -> list[dict[str, Any]]:
    """Return the diagnostics of validate_script for a script."""
    return list(call_tool(game, "validate_script", {"content": content})["diagnostics"])


def diagnostics_of_kind(
    game: ProjectWorkspace, content: str, kind: str
) -> list[tuple[int, str, str]]:
    """Return (line, message, fixHint) of the diagnostics of one kind."""
    return [
        (diagnostic["line"], diagnostic["message"], diagnostic["fixHint"])
        for diagnostic in diagnostics(game, content)
        if diagnostic["kind"] == kind
    ]
