"""Tools that search a whole game: they respect their deadline, and report games with too many
files."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from runners.workspace.errors import TooLarge, WorkspaceTimeout
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.webgal import project
from runners.workspace.webgal.project import SCENES, Project, list_files_below
from tests.support.workspace.webgal import sample_game
from tests.support.workspace.workspace_calls import call_tool

CALLS = [
    ("list_project_resources", {}),
    ("validate_script", {"content": "changeBg:nothing.png;"}),
    ("generate_character_profile", {"name": "x", "imageFile": "nothing.png"}),
]


@pytest.mark.parametrize(("tool", "args"), CALLS)
def test_a_game_with_too_many_files_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, args: dict[str, str]
) -> None:
    monkeypatch.setattr(project, "MAX_FILES", 1)
    with pytest.raises(TooLarge):
        call_tool(sample_game(tmp_path), tool, args)


@pytest.mark.parametrize(("tool", "args"), CALLS)
def test_a_call_past_its_deadline_reports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, args: dict[str, str]
) -> None:
    monkeypatch.setattr(f"runners.workspace.tools.{tool}.thread_deadline", lambda _: 0.0)
    with pytest.raises(WorkspaceTimeout):
        call_tool(sample_game(tmp_path), tool, args)


def test_the_other_scenes_are_read_only_until_the_deadline(tmp_path: Path) -> None:
    with Sandbox(sample_game(tmp_path).root, ()) as sandbox:
        opened = Project(sandbox, deadline=time.monotonic() + 3600)
        assert opened.files_in(SCENES) == set(list_files_below(sandbox, SCENES))
        opened._until = 0.0
        with pytest.raises(WorkspaceTimeout):
            opened.count_uses_in_other_scenes("yukino")
