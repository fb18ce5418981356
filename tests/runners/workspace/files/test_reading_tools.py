"""list_files and read_file: the promises of the seed's schemas, tables and examples."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from runners.tools.registry import get_tool
from runners.workspace.errors import (
    BadArguments,
    NotText,
    PathDenied,
    PathNotFound,
    TooLarge,
    ToolDisabled,
    WorkspaceFailed,
)
from runners.workspace.files import safe_open
from runners.workspace.files.sandbox import Sandbox
from tests.support.shared_files import SHARED
from tests.support.workspace.workspace_calls import call_tool, workspace_at

SEED = SHARED / "seeds/S4-workspace-tool-contracts.md"


@pytest.fixture
def project(tmp_path: Path) -> Any:
    workspace = workspace_at(tmp_path)
    scene = workspace.root / "game/scene"
    scene.mkdir(parents=True)
    for name in ("start.txt", "chapter1.txt", "ending.txt", "notes.md"):
        (scene / name).write_text("旁白: 开始;\r\n")
    (scene / "deep").mkdir()
    (scene / "deep/x.txt").write_text("")
    (workspace.root / ".git").mkdir()
    return workspace


def entries(workspace: Any, path: str, **options: Any) -> list[str]:
    listed: list[str] = call_tool(workspace, "list_files", {"path": path, **options})["entries"]
    return listed


def test_the_seeds_example_gets_the_seeds_answer(project: Any) -> None:
    (project.root / "game/scene/deep/x.txt").unlink()
    assert entries(project, "game/scene", globs=["**/*.txt"]) == [
        "chapter1.txt",
        "ending.txt",
        "start.txt",
    ]


def test_a_list_has_one_level_without_globs_and_the_depth_of_the_globs_with_them(
    project: Any,
) -> None:
    assert entries(project, ".") == ["game"]
    everything = ["chapter1.txt", "deep", "ending.txt", "notes.md", "start.txt"]
    assert entries(project, "./game//scene/") == everything
    assert entries(project, "game/scene", dirsOnly=True) == ["deep"]
    assert entries(project, "game", globs=["*/*.md", "**/x.*"]) == [
        "scene/deep/x.txt",
        "scene/notes.md",
    ]
    assert entries(project, ".", globs=["**"], dirsOnly=True) == [
        "game",
        "game/scene",
        "game/scene/deep",
    ]
    assert entries(project, "game/scene", globs=["[c-e]*.txt"]) == ["chapter1.txt", "ending.txt"]
    assert entries(project, "game/scene", globs=["{start,notes}.{md,txt}"]) == [
        "notes.md",
        "start.txt",
    ]
    assert entries(project, ".", globs=[".git/**", "**/none"]) == []


@pytest.mark.parametrize(
    ("path", "globs", "failure"),
    [
        ("/", [], PathDenied),
        (".git", [], PathDenied),
        (".", ["../**"], PathDenied),
        (".", ["a/{b,..}/c"], PathDenied),
        (".", ["*" * 2000], BadArguments),
        (".", ["{a,b,c,d}" * 40], BadArguments),
        (".", ["*"] * 101, BadArguments),
        ("game/scene/start.txt", [], BadArguments),
        ("gone", [], PathNotFound),
    ],
)
def test_an_impossible_list_is_refused_with_a_hint(
    project: Any, path: str, globs: list[str], failure: type[WorkspaceFailed]
) -> None:
    with pytest.raises(failure) as caught:
        entries(project, path, globs=globs)
    assert caught.value.hint
    assert str(project.root) not in json.dumps(caught.value.as_dict())


def test_a_file_is_read_completely_with_its_bom_and_line_ends(project: Any) -> None:
    (project.root / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r")
    assert call_tool(project, "read_file", {"path": "./a.txt"}) == {
        "path": "a.txt",
        "content": "\ufeffone\r\ntwo\r",
        "encoding": "utf-8",
        "bytes": 12,
    }


def test_a_caller_may_lower_the_limit_and_never_raise_it(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path, max_read_bytes=100)
    (workspace.root / "ok").write_text("x" * 100)
    (workspace.root / "big").write_text("x" * 101)
    assert call_tool(workspace, "read_file", {"path": "ok", "maxBytes": 100})["bytes"] == 100
    for args in ({"path": "ok", "maxBytes": 99}, {"path": "big", "maxBytes": 9_000_000}):
        with pytest.raises(TooLarge):
            call_tool(workspace, "read_file", args)


@pytest.mark.parametrize("resolution", ["at once", "step by step"])
def test_a_link_to_a_forbidden_folder_is_not_followed(
    project: Any, monkeypatch: pytest.MonkeyPatch, resolution: str
) -> None:
    if resolution == "step by step":
        monkeypatch.setattr(safe_open, "has_openat2", lambda: False)
    (project.root / ".git/config").write_text("secret")
    (project.root / "to_git").symlink_to(".git")
    (project.root / "to_config").symlink_to(".git/config")
    for path in ("to_git/config", "to_config"):
        with pytest.raises(PathDenied, match="link"):
            call_tool(project, "read_file", {"path": path})


def test_a_file_that_becomes_a_pipe_after_its_check_is_not_read(
    project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, stat = project.root / "a.txt", Sandbox._stat
    path.write_text("text")

    def stat_and_replace(*args: Any) -> os.stat_result:
        checked = stat(*args)
        path.unlink()
        os.mkfifo(path)
        return checked

    monkeypatch.setattr(Sandbox, "_stat", stat_and_replace)
    with pytest.raises(PathDenied, match="not a regular file"):
        call_tool(project, "read_file", {"path": "a.txt"})


def test_a_file_that_is_not_text_is_reported_as_such(project: Any) -> None:
    for data in ("hé".encode("utf-16"), b"\x89PNG\r\n\x1a\n", "é".encode("latin-1")):
        (project.root / "f").write_bytes(data)
        with pytest.raises(NotText):
            call_tool(project, "read_file", {"path": "f"})


def test_wrong_types_are_refused(project: Any) -> None:
    for args in (
        {},
        {"path": 123},
        {"path": ""},
        {"path": "a", "maxBytes": 0},
        {"path": "a", "x": 1},
    ):
        with pytest.raises(BadArguments):
            call_tool(project, "read_file", args)
    for args in ({"path": ".", "globs": "*"}, {"path": ".", "dirsOnly": "true"}):
        with pytest.raises(BadArguments):
            call_tool(project, "list_files", args)


def test_without_a_workspace_the_tools_are_unavailable() -> None:
    for name, args in (("list_files", {}), ("read_file", {}), ("search_files", {"regex": "x"})):
        with pytest.raises(ToolDisabled):
            call_tool(None, name, {"path": ".", **args})


def test_answers_are_valid_by_the_seeds_schemas(project: Any) -> None:
    calls = {
        "list_files": {"path": "."},
        "read_file": {"path": "game/scene/start.txt"},
        "search_files": {"path": ".", "regex": "开始"},
    }
    for name, args in calls.items():
        tool = get_tool(name)
        assert tool is not None
        assert tool.request is not None
        assert tool.response is not None
        jsonschema_rs.validate(dict(tool.request), args)
        jsonschema_rs.validate(dict(tool.response), dict(call_tool(project, name, args)))


@pytest.mark.skipif(not SEED.exists(), reason="the seed is not here")
def test_the_schemas_equal_those_of_the_seed() -> None:
    seed = SEED.read_text()
    for name in ("list_files", "read_file", "search_files"):
        tool = get_tool(name)
        assert tool is not None
        for kind, schema in (("request", tool.request), ("response", tool.response)):
            at = schema_block(seed, f"{name}.{kind}")
            assert json.loads(at) == schema


def schema_block(seed: str, name: str) -> str:
    """Return the JSON block of the seed that contains a schema's name."""
    at = seed.index(f'"{name}"')
    start = seed.rindex("```json", 0, at) + len("```json")
    return seed[start : seed.index("```", at)]
