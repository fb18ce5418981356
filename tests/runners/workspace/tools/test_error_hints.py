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
from tests.support.workspace.project import Project
from tests.support.workspace.workspace_calls import call_tool, workspace_at

FAILING: list[tuple[str, dict[str, Any]]] = [
    ("write_to_file", {"path": "folder", "content": "x", "dryRun": True}),
    ("replace_in_file", {"path": "a.txt", "find": "(", "replace": "x", "flags": ""}),
]


@pytest.mark.parametrize(("tool", "args"), FAILING)
@pytest.mark.parametrize(("language", "start"), [("EN", "Correct the"), ("ZH", "请按照工具")])
def test_wrong_arguments_of_a_write_have_a_hint(
    tmp_path: Path, tool: str, args: dict[str, Any], language: str, start: str
) -> None:
    workspace = workspace_at(tmp_path, language=language)
    (workspace.root / "folder").mkdir()
    (workspace.root / "a.txt").write_text("x")
    with pytest.raises(WorkspaceFailed) as raised:
        call_tool(workspace, tool, args)
    assert (raised.value.code, (raised.value.hint or "")[: len(start)]) == (
        "E_BAD_ARGS",
        start,
    )


def test_a_replacement_that_is_too_slow_has_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = workspace_at(tmp_path)
    (workspace.root / "a.txt").write_text("x")
    real_clock = time.monotonic
    monkeypatch.setattr(replacement, "time", SimpleNamespace(monotonic=lambda: real_clock() + 3600))
    with pytest.raises(WorkspaceFailed) as raised:
        call_tool(
            workspace,
            "replace_in_file",
            {"path": "a.txt", "find": "x", "replace": "y", "flags": ""},
        )
    assert raised.value.code == "E_TIMEOUT"
    assert "more time" in (raised.value.hint or "")


@pytest.mark.parametrize("path", ["../x", "game/scene/none.txt", "package.json"])
def test_a_path_that_is_not_a_scene_has_a_hint(tmp_path: Path, path: str) -> None:
    (tmp_path / "game_project").mkdir()
    game = Project(tmp_path / "game_project")
    game.scripts()
    assert game.error("preview_scene", scenePath=path)["hint"]


@pytest.mark.parametrize("regex", ["a)", "(", "[", "*"])
def test_a_wrong_pattern_is_reported_as_the_caller_wrote_it(regex: str) -> None:
    with pytest.raises(WorkspaceFailed) as raised:
        line_pattern(regex)
    assert "(?m)" not in raised.value.message
    assert raised.value.message.endswith(f": {regex}")
