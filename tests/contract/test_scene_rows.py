"""Test scenes, resources and characters over REST and MCP: bad inputs, and the workflow of S4."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.bad_inputs import FOLDER, Row, encode, in_samples, rows
from tests.support.runners.tool_client import ToolClient
from tests.support.workspace.webgal_media import GAME
from tests.support.workspace.workspace_calls import files_in

TOOLS = {"validate_script", "list_project_resources", "generate_character_profile"}


def own_rows() -> Iterator[Row]:
    """Yield the project's rows for these tools."""
    lines = (FOLDER / "bad_inputs_scenes.jsonl").read_text().splitlines()
    for number, line in enumerate(lines, 1):
        yield Row(**json.loads(line), source=f"scenes:{number}")


def shared_rows() -> Iterator[Row]:
    """Yield the shared rows; test_workspace_rows.py has the files for the rows of its own list."""
    for row in rows("mcp+rest:workspace"):
        if row.tool in TOOLS and not row.source.startswith("workspace:"):
            yield row


ROWS = [*own_rows(), *shared_rows()]


@pytest.fixture
def game(project: Path) -> Path:
    """Create the sample game as the project, with the files that the rows refer to."""
    shutil.copytree(GAME, project, dirs_exist_ok=True)
    scenes = project / "game/scene"
    (scenes / "link.txt").symlink_to(scenes / "start.txt")
    (scenes / "gb18030.txt").write_bytes("雪乃:你好;".encode("gb18030"))
    (project / "game/character").mkdir()
    (project / "game/character/taken.json").write_text("[]")
    return project


def test_there_are_rows_for_each_tool() -> None:
    assert {row.tool for row in ROWS} == TOOLS


@pytest.mark.parametrize("row", in_samples(ROWS, each=2))
def test_a_bad_input_gets_its_code_and_nothing_is_written(
    tool_client: ToolClient, game: Path, row: Row
) -> None:
    before = files_in(game)
    code, answer = tool_client.call(row.tool, encode(row.input))
    assert code == row.expect_code, answer
    if code == "OK":
        assert answer["valid"] is False
        assert {diagnostic["kind"] for diagnostic in answer["diagnostics"]} == {"syntax"}
    assert files_in(game) == before


def test_a_scene_is_written_validated_and_corrected(tool_client: ToolClient, game: Path) -> None:
    scene = {
        "path": "game/scene/beach_date.txt",
        "content": "changeBg: beach.jpg -next;\n雪乃: 你好;\n",
    }
    for dry_run in (True, False):
        assert tool_client.call("write_to_file", scene | {"dryRun": dry_run})[0] == "OK"
    _, answer = tool_client.call("validate_script", {"path": scene["path"]})
    [diagnostic] = answer["diagnostics"]
    assert (answer["valid"], diagnostic["kind"], "beach.png" in diagnostic["fixHint"]) == (
        False,
        "resource",
        True,
    )
    edit = {"path": scene["path"], "find": "beach.jpg", "replace": "beach.png"}
    assert tool_client.call("replace_in_file", edit) == ("OK", {"count": 1})
    assert tool_client.call("validate_script", {"path": scene["path"]})[1] == {
        "valid": True,
        "diagnostics": [],
    }


def test_many_diagnostics_are_returned_completely(tool_client: ToolClient, game: Path) -> None:
    _, answer = tool_client.call("validate_script", {"content": "x\n" * 5000})
    assert [diagnostic["line"] for diagnostic in answer["diagnostics"]] == list(range(1, 5001))
