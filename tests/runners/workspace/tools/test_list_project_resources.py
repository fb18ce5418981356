"""The list_project_resources tool lists a game's resources by the names that scripts use."""

from __future__ import annotations

from pathlib import Path

import jsonschema_rs
import pytest

from runners.workspace.errors import BadArguments, ToolDisabled
from runners.workspace.tools.list_project_resources import RESPONSE
from runners.workspace.workspace import ProjectWorkspace
from tests.support.workspace.webgal import game_with, sample_game
from tests.support.workspace.webgal_media import GAME, media
from tests.support.workspace.workspace_calls import call_tool


def list_resources(game: ProjectWorkspace) -> dict[str, list[str]]:
    """Call the tool, validate its answer against the seed's schema, and return it."""
    answer = dict(call_tool(game, "list_project_resources", {}))
    jsonschema_rs.Draft202012Validator(RESPONSE).validate(answer)
    return answer


def test_the_resources_of_the_sample_game_are_listed(tmp_path: Path) -> None:
    assert list_resources(sample_game(tmp_path)) == {
        "backgrounds": ["beach.png", "classroom.png", "night/rooftop.png"],
        "figures": ["live/shore.model3.json", "shore.png", "yukino.png", "yukino/smile.png"],
        "bgm": ["title.wav", "waves.wav"],
        "vocals": ["bell.wav", "yukino/v1.wav", "yukino/v2.wav"],
        "scenes": ["beach.txt", "ending.txt", "rooftop.txt", "start.txt"],
    }


def test_the_media_of_the_sample_game_match_their_generator() -> None:
    stored = {path: (GAME / "game" / path).read_bytes() for path in media()}
    assert stored == media()


def test_a_missing_folder_has_an_empty_list(tmp_path: Path) -> None:
    empty: dict[str, list[str]] = {
        "backgrounds": [],
        "figures": [],
        "bgm": [],
        "vocals": [],
        "scenes": [],
    }
    assert list_resources(game_with(tmp_path)) == empty
    (tmp_path / "root/game").rmdir()
    assert list_resources(game_with(tmp_path, ["bgm"])) == empty


def test_other_formats_hidden_files_links_and_forbidden_folders_are_not_listed(
    tmp_path: Path,
) -> None:
    game = game_with(
        tmp_path,
        [
            "background/a.PNG",
            "background/读我.txt",
            "background/.hidden.png",
            "background/b.mp3",
            "background/node_modules/c.png",
            "figure/d.json",
            "figure/e.skel",
            "figure/f.moc3",
            "vocal/g.ogg",
            "vocal/h.wav.bak",
            "scene/i.txt",
            "scene/j.json",
            "video/k.mp4",
        ],
    )
    (game.root / "game/background/link.png").symlink_to(game.root / "game/background/a.PNG")
    (game.root / "game/bgm").symlink_to(game.root / "game/vocal")
    assert list_resources(game) == {
        "backgrounds": ["a.PNG"],
        "figures": ["d.json", "e.skel"],
        "bgm": [],
        "vocals": ["g.ogg"],
        "scenes": ["i.txt"],
    }


def test_the_tool_accepts_no_arguments_and_needs_a_workspace(tmp_path: Path) -> None:
    with pytest.raises(BadArguments):
        call_tool(game_with(tmp_path), "list_project_resources", {"path": "."})
    with pytest.raises(ToolDisabled):
        call_tool(None, "list_project_resources", {})
