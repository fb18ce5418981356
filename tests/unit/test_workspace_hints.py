"""Errors of the workspace tools have a hint in the workspace's language."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runners.workspace.errors import WorkspaceFailed
from runners.workspace.search.patterns import line_pattern
from runners.workspace.writing import replacement
from tests.support.project import Project
from tests.support.workspace_calls import call_tool, workspace_at

FAILING: list[tuple[str, dict[str, Any]]] = [
    ("write_to_file", {"path": "folder", "content": "x", "dryRun": True}),
    ("replace_in_file", {"path": "a.txt", "find": "(", "replace": "x", "flags": ""}),
]


@pytest.mark.parametrize(("tool", "args"), FAILING)
@pytest.mark.parametrize(("language", "begins"), [("EN", "Correct the"), ("ZH", "请按照工具")])
def test_wrong_arguments_of_a_write_have_a_hint(
    tmp_path: Path, tool: str, args: dict[str, Any], language: str, begins: str
) -> None:
    here = workspace_at(tmp_path, language=language)
    (here.root / "folder").mkdir()
    (here.root / "a.txt").write_text("x")
    with pytest.raises(WorkspaceFailed) as failed:
        call_tool(here, tool, args)
    assert (failed.value.code, (failed.value.hint or "")[: len(begins)]) == (
        "E_BAD_ARGS",
        begins,
    )


def test_a_replacement_that_is_too_slow_has_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = workspace_at(tmp_path)
    (here.root / "a.txt").write_text("x")
    at_once = time.monotonic
    monkeypatch.setattr(replacement, "time", SimpleNamespace(monotonic=lambda: at_once() + 3600))
    with pytest.raises(WorkspaceFailed) as failed:
        call_tool(
            here, "replace_in_file", {"path": "a.txt", "find": "x", "replace": "y", "flags": ""}
        )
    assert failed.value.code == "E_TIMEOUT"
    assert "more time" in (failed.value.hint or "")


@pytest.mark.parametrize("path", ["../x", "game/scene/none.txt", "package.json"])
def test_a_path_that_is_not_a_scene_has_a_hint(tmp_path: Path, path: str) -> None:
    (tmp_path / "game_project").mkdir()
    game = Project(tmp_path / "game_project")
    game.scripts()
    assert game.error("preview_scene", scenePath=path)["hint"]


@pytest.mark.parametrize("regex", ["a)", "(", "[", "*"])
def test_a_wrong_pattern_is_reported_as_the_caller_wrote_it(regex: str) -> None:
    with pytest.raises(WorkspaceFailed) as failed:
        line_pattern(regex)
    assert "(?m)" not in failed.value.message
    assert failed.value.message.endswith(f": {regex}")
