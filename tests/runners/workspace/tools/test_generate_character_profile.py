"""The generate_character_profile tool writes a definition atomically, with a snapshot for undo."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from runners.workspace.errors import (
    BadArguments,
    PathDenied,
    PathNotFound,
    ToolDisabled,
    WriteConflict,
)
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.workspace import ProjectWorkspace
from runners.workspace.writing.snapshots import list_snapshots, read_snapshot
from tests.support.workspace.webgal import sample_game
from tests.support.workspace.workspace_calls import call_tool, files_in

NAME = "game/character/雪乃.json"


@pytest.fixture
def game(tmp_path: Path) -> ProjectWorkspace:
    """Return a copy of the sample game."""
    return sample_game(tmp_path)


def define(game: ProjectWorkspace, **args: Any) -> dict[str, Any]:
    """Define a character, by default 雪乃 with her image."""
    return dict(
        call_tool(
            game, "generate_character_profile", {"name": "雪乃", "imageFile": "yukino.png", **args}
        )
    )


def stored_definition(game: ProjectWorkspace) -> dict[str, Any]:
    """Return the definition of 雪乃."""
    return dict(json.loads((game.root / NAME).read_text()))


def test_a_definition_is_written_and_snapshotted(game: ProjectWorkspace) -> None:
    assert define(game, defaultExpression="smile") == {"success": True}
    assert stored_definition(game) == {
        "name": "雪乃",
        "image": "yukino.png",
        "defaultExpression": "smile",
    }
    [snapshot] = list_snapshots(game.state)
    assert (snapshot.path, snapshot.existed) == (NAME, False)


@pytest.mark.parametrize(
    "image", ["game/figure/yukino/smile.png", "yukino/smile.png", "./yukino//smile.png"]
)
def test_an_image_path_is_relative_to_the_figure_folder(game: ProjectWorkspace, image: str) -> None:
    define(game, imageFile=image)
    assert stored_definition(game)["image"] == "yukino/smile.png"


def test_the_same_definition_again_writes_nothing(game: ProjectWorkspace) -> None:
    define(game)
    assert define(game) == {"success": True}
    assert len(list_snapshots(game.state)) == 1


def test_a_new_definition_keeps_unnamed_fields_and_can_be_undone(
    game: ProjectWorkspace,
) -> None:
    define(game, defaultExpression="smile")
    (game.root / NAME).write_text(json.dumps(stored_definition(game) | {"voice": "v1"}))
    define(game, imageFile="shore.png")
    assert stored_definition(game) == {
        "name": "雪乃",
        "image": "shore.png",
        "defaultExpression": "smile",
        "voice": "v1",
    }
    _, earlier = read_snapshot(game.state, list_snapshots(game.state)[0].id)
    assert json.loads(earlier)["image"] == "yukino.png"


@pytest.mark.parametrize("content", ["", "not json", "[1]", '"雪乃"', "[" * 5000])
def test_a_file_that_is_not_a_definition_is_not_overwritten(
    game: ProjectWorkspace, content: str
) -> None:
    (game.root / NAME).parent.mkdir()
    (game.root / NAME).write_text(content)
    with pytest.raises(WriteConflict):
        define(game)
    assert (game.root / NAME).read_text() == content


@pytest.mark.parametrize(
    ("image", "failure"),
    [
        ("absent.png", PathNotFound),
        ("yukino", PathNotFound),
        (".", PathNotFound),
        ("../bgm/title.wav", PathDenied),
        ("../../../etc/passwd", PathDenied),
        ("/etc/passwd", PathDenied),
        ("link.png", PathDenied),
        (".git/a.png", PathDenied),
        ("a\0.png", BadArguments),
        ("game/figure/", BadArguments),
    ],
)
def test_the_image_must_be_a_file_in_the_figure_folder(
    game: ProjectWorkspace, image: str, failure: type[Exception]
) -> None:
    (game.root / "game/figure/link.png").symlink_to(game.root / "game/figure/yukino.png")
    before = files_in(game.root)
    with pytest.raises(failure):
        define(game, imageFile=image)
    assert files_in(game.root) == before


@pytest.mark.parametrize(
    ("language", "hint"),
    [("EN", "The closest file: yukino.png"), ("ZH", "最接近的文件：yukino.png")],
)
def test_the_error_for_a_missing_image_names_the_closest_file(
    tmp_path: Path, language: str, hint: str
) -> None:
    with pytest.raises(PathNotFound) as raised:
        define(sample_game(tmp_path, language=language), imageFile="yukno.png")
    assert (raised.value.hint, raised.value.code) == (hint, "E_NOT_FOUND")


@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("../x", PathDenied),
        ("a/b", PathDenied),
        ("a\\b", PathDenied),
        (".hidden", PathDenied),
        ("..", PathDenied),
        ("CON", PathDenied),
        (" ", BadArguments),
        ("a\nb", BadArguments),
        ("a\0b", BadArguments),
        ("n" * 101, BadArguments),
        ("海" * 90, BadArguments),
    ],
)
def test_a_name_must_be_a_valid_file_name(
    game: ProjectWorkspace, name: str, failure: type[Exception]
) -> None:
    before = files_in(game.root)
    with pytest.raises(failure):
        define(game, name=name)
    assert files_in(game.root) == before


@pytest.mark.parametrize(
    "args",
    [
        {"name": ""},
        {"imageFile": ""},
        {"name": 1},
        {"imageFile": None},
        {"more": 1},
        {"defaultExpression": 1},
    ],
)
def test_arguments_that_violate_the_seeds_schema_are_refused(
    game: ProjectWorkspace, args: dict[str, Any]
) -> None:
    with pytest.raises(BadArguments):
        define(game, **args)


def test_two_concurrent_calls_leave_one_complete_definition(game: ProjectWorkspace) -> None:
    with ThreadPoolExecutor(2) as executor:
        futures = [
            executor.submit(define, game, imageFile=future)
            for future in ("yukino.png", "shore.png")
        ]
        assert [future.result() for future in futures] == [{"success": True}] * 2
    assert stored_definition(game)["image"] in {"yukino.png", "shore.png"}


def test_a_definition_is_not_listed_as_a_figure(game: ProjectWorkspace) -> None:
    figures = call_tool(game, "list_project_resources", {})["figures"]
    define(game)
    assert call_tool(game, "list_project_resources", {})["figures"] == figures


def test_without_a_workspace_the_tool_is_disabled() -> None:
    with pytest.raises(ToolDisabled):
        call_tool(None, "generate_character_profile", {"name": "a", "imageFile": "b"})


def test_a_concurrently_created_definition_is_merged_and_not_overwritten(
    game: ProjectWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, file = Sandbox.read, game.root / NAME

    def read_before_it_exists(self: Sandbox, path: str, *, limit: int) -> bytes:
        try:
            return read(self, path, limit=limit)
        except PathNotFound:
            monkeypatch.setattr(Sandbox, "read", read)
            file.parent.mkdir(exist_ok=True)
            file.write_text('{"voice": "other"}')
            raise

    monkeypatch.setattr(Sandbox, "read", read_before_it_exists)
    with pytest.raises(WriteConflict):
        define(game)
    define(game)
    assert json.loads(file.read_text()).keys() == {"voice", "name", "image"}
