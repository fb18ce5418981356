"""The tool validate_script: its input, its output and its errors."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from runners.invocation.invoke import invoke
from runners.tools.base import ToolCall, ToolContext
from runners.workspace.errors import (
    BadArguments,
    LintFailed,
    ParseFailed,
    PathDenied,
    PathNotFound,
    TooLarge,
    ToolDisabled,
)
from runners.workspace.tools.validate_script import REQUEST, RESPONSE
from runners.workspace.webgal import script
from runners.workspace.webgal.checks import MAX_DIAGNOSTICS, MAX_LINES
from runners.workspace.webgal.parser import Statement, statements
from runners.workspace.webgal.project import SCENE_BYTES
from runners.workspace.workspace import ProjectWorkspace
from tests.support.workspace.webgal import diagnostics, sample_game
from tests.support.workspace.workspace_calls import call_tool


@pytest.fixture
def game(tmp_path: Path) -> ProjectWorkspace:
    """A copy of the sample game; its diagnostics are in English."""
    return sample_game(tmp_path)


def check(game: ProjectWorkspace, **args: str) -> dict[str, Any]:
    """Call the tool and return its answer; check the answer against the seed's schema."""
    answer = dict(call_tool(game, "validate_script", args))
    jsonschema_rs.Draft202012Validator(RESPONSE).validate(answer)
    return answer


@pytest.mark.parametrize("scene", ["start", "beach", "rooftop", "ending"])
def test_every_scene_of_the_sample_game_is_valid(game: ProjectWorkspace, scene: str) -> None:
    assert check(game, path=f"game/scene/{scene}.txt") == {"valid": True, "diagnostics": []}


def test_the_seeds_own_example_is_valid(game: ProjectWorkspace) -> None:
    content = "changeBg: beach.png -next;\n雪乃: 海风真舒服呢;\n"
    assert check(game, content=content) == {"valid": True, "diagnostics": []}


@pytest.mark.parametrize(
    ("content", "kind"),
    [("雪乃:没有分号", "syntax"), ("frobnicate:x;", "syntax"), ("changeBg:beach.jpg;", "resource")],
)
def test_the_seeds_test_vectors(game: ProjectWorkspace, content: str, kind: str) -> None:
    answer = check(game, content=content)
    assert (answer["valid"], [diagnostic["kind"] for diagnostic in answer["diagnostics"]]) == (
        False,
        [kind],
    )


def test_style_warnings_alone_leave_a_script_valid(game: ProjectWorkspace) -> None:
    answer = check(game, content="雪乃:你好; \n")
    assert (answer["valid"], answer["diagnostics"][0]["kind"]) == (True, "style")


def test_diagnostics_are_chinese_unless_english_is_requested(tmp_path: Path) -> None:
    found = diagnostics(sample_game(tmp_path, language="ZH"), "changeBg:beach.jpg")
    assert [(diagnostic["message"], diagnostic["fixHint"]) for diagnostic in found] == [
        ("语句没有以英文分号“;”结尾", "在行尾加上“;”"),
        ("找不到背景“game/background/beach.jpg”", "最接近的文件：beach.png"),
    ]


def test_words_of_the_scene_itself_do_not_become_known(game: ProjectWorkspace) -> None:
    (game.root / "game/scene/new.txt").write_text("frobnicate:x;")
    assert check(game, path="game/scene/new.txt")["valid"] is False
    assert check(game, path="game/scene/./new.txt")["valid"] is False


@pytest.mark.parametrize("change", ["", "雪乃:再见;\n", "end;\n"])
def test_words_of_the_saved_version_do_not_become_known(
    game: ProjectWorkspace, change: str
) -> None:
    saved = "雪乃:早上好;\nfrobnicate:x;\n小明:你好;\n"
    (game.root / "game/scene/new.txt").write_text(saved)
    (game.root / "game/scene/again.txt").write_text("雪乃:早上好;\n")
    assert check(game, content=saved + change)["valid"] is False
    assert check(game, content=change + saved.replace(":x", ":y"))["valid"] is False


def test_a_scene_with_only_some_lines_in_common_is_another_scene(game: ProjectWorkspace) -> None:
    (game.root / "game/scene/new.txt").write_text("shore:hello;\nend;\n")
    assert check(game, content="shore:here too;\nend;\n")["valid"] is True


def test_of_many_similar_scenes_only_one_is_the_saved_version(game: ProjectWorkspace) -> None:
    for name in ("one", "two"):
        (game.root / f"game/scene/{name}.txt").write_text("雪乃:你好;\n小明:你好;\nshore:hello;\n")
    assert check(game, content="雪乃:你好;\n小明:你好;\nshore:hello;\n")["valid"] is True


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"path": "a.txt", "content": "x"},
        {"path": 1},
        {"file": "a"},
        {"path": None},
        {"content": None, "path": "a"},
    ],
)
def test_exactly_one_of_path_and_content_is_required(
    game: ProjectWorkspace, args: dict[str, Any]
) -> None:
    with pytest.raises(BadArguments):
        call_tool(game, "validate_script", args)
    assert not jsonschema_rs.Draft202012Validator(REQUEST).is_valid(args)


@pytest.mark.parametrize(
    ("path", "failure"),
    [
        ("game/scene/none.txt", PathNotFound),
        ("../start.txt", PathDenied),
        ("/etc/passwd", PathDenied),
        (".git/config", PathDenied),
        ("game/scene", BadArguments),
        ("", BadArguments),
        ("game/\0.txt", BadArguments),
        ("game/scene/link.txt", PathDenied),
    ],
)
def test_a_path_that_cannot_be_read_reports_the_reason(
    game: ProjectWorkspace, path: str, failure: type[Exception]
) -> None:
    (game.root / "game/scene/link.txt").symlink_to(game.root / "game/scene/start.txt")
    with pytest.raises(failure):
        check(game, path=path)


def test_a_missing_file_is_reported_with_a_hint(game: ProjectWorkspace) -> None:
    with pytest.raises(PathNotFound) as raised:
        check(game, path="game/scene/none.txt")
    error = raised.value.as_workspace_error()["error"]
    assert (error["code"], error["recoverable"]) == ("E_NOT_FOUND", True)
    assert (error["details"]["path"], "list_files" in error["hint"]) == (
        "game/scene/none.txt",
        True,
    )


@pytest.mark.parametrize("data", [b"\xff\xfea\x00", b"\x80", b"a;\x00", "海".encode("gb18030")])
def test_a_file_that_is_not_text_cannot_be_parsed(game: ProjectWorkspace, data: bytes) -> None:
    (game.root / "game/scene/odd.txt").write_bytes(data)
    with pytest.raises(ParseFailed) as raised:
        check(game, path="game/scene/odd.txt")
    assert raised.value.code == "E_PARSE_FAIL"


@pytest.mark.parametrize("content", ["\ud800", "a;\0"])
def test_content_that_is_not_text_cannot_be_parsed(game: ProjectWorkspace, content: str) -> None:
    with pytest.raises(ParseFailed):
        check(game, content=content)


@pytest.mark.parametrize(
    "content", ["x;\n" * 400_000, "\n" * MAX_LINES, "海" * (SCENE_BYTES // 3 + 1)]
)
def test_a_script_has_a_size_limit(game: ProjectWorkspace, content: str) -> None:
    (game.root / "big.txt").write_text(content)
    for args in ({"content": content}, {"path": "big.txt"}):
        with pytest.raises(TooLarge):
            check(game, **args)


def test_a_workspace_may_set_a_smaller_limit(tmp_path: Path) -> None:
    game = sample_game(tmp_path, max_read_bytes=10)
    assert check(game, content="a" * 9 + ";")["valid"] is True
    with pytest.raises(TooLarge):
        check(game, content="a" * 10 + ";")


def test_content_that_is_not_a_script_fails_as_a_whole(game: ProjectWorkspace) -> None:
    assert len(check(game, content="x\n" * MAX_DIAGNOSTICS)["diagnostics"]) == MAX_DIAGNOSTICS
    with pytest.raises(LintFailed) as raised:
        check(game, content="x\n" * (MAX_DIAGNOSTICS + 1))
    assert raised.value.details == {"counted": {"syntax": MAX_DIAGNOSTICS + 1}, "firstLine": 1}


def test_style_warnings_over_the_limit_are_counted(game: ProjectWorkspace) -> None:
    answer = check(game, content="a; \n" * (MAX_DIAGNOSTICS + 5))
    assert (answer["valid"], len(answer["diagnostics"])) == (True, MAX_DIAGNOSTICS + 1)
    assert answer["diagnostics"][-1]["message"] == "5 more style diagnostics are not listed"


def test_a_check_keeps_no_statements(
    game: ProjectWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []

    def counted(text: str, beginning: str = "") -> Iterator[Statement]:
        yield from statements(text, beginning)
        kept.append(sum(isinstance(one, Statement) for one in gc.get_objects()))

    monkeypatch.setattr(script, "statements", counted)
    check(game, content=" speaker:x;\n choose:a:b;\nlabel:b;\na;\n -next;\n" * 50)
    assert kept
    assert max(kept) < 5


def test_without_a_workspace_the_tool_is_disabled() -> None:
    with pytest.raises(ToolDisabled):
        call_tool(None, "validate_script", {"content": "a;"})


def test_the_tool_call_api_reports_bad_arguments_as_such(game: ProjectWorkspace) -> None:
    async def save_artifact(*_: Any, **__: Any) -> str:
        return ""

    ctx = ToolContext(
        "run_1", "local", time.monotonic() + 60, save_artifact, lambda *_: None, workspace=game
    )
    result = asyncio.run(invoke(ToolCall("validate_script", {"path": "a", "content": "b"}), ctx))
    assert (result.error or {})["errorCode"] == "E_BAD_ARGS"
