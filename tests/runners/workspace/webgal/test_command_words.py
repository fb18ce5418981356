"""A word before `:` is a speaker, unless it was certainly or probably meant as a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.workspace.webgal.parser import COMMANDS
from runners.workspace.workspace import ProjectWorkspace
from tests.support.workspace.webgal import diagnostics, diagnostics_of_kind, game_with


@pytest.fixture
def game(tmp_path: Path) -> ProjectWorkspace:
    """An empty game."""
    return game_with(tmp_path)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_is_known(game: ProjectWorkspace, command: str) -> None:
    assert diagnostics_of_kind(game, f"{command}:;\n{command};", "syntax") == []


@pytest.mark.parametrize(
    ("word", "command"),
    [
        ("changeBG", "changeBg"),
        ("changBg", "changeBg"),
        ("chnageBg", "changeBg"),
        ("changeFigur", "changeFigure"),
        ("changebg", "changeBg"),
        ("jumplabel", "jumpLabel"),
        ("playeffect", "playEffect"),
        ("setVAR", "setVar"),
        ("callscene", "callScene"),
        ("pixiperform", "pixiPerform"),
        ("unlockCG", "unlockCg"),
        ("miniAvater", "miniAvatar"),
    ],
)
def test_a_near_miss_is_unknown_however_often_it_occurs(
    game: ProjectWorkspace, word: str, command: str
) -> None:
    expected = (f"Unknown command “{word}”", f"Did you mean “{command}”?")
    assert diagnostics_of_kind(game, f"{word}:x;\n" * 3, "syntax") == [
        (n, *expected) for n in (1, 2, 3)
    ]


def test_a_small_word_that_occurs_once_is_unknown(game: ProjectWorkspace) -> None:
    [(line, message, hint)] = diagnostics_of_kind(game, "a;\nlable:x;", "syntax")
    assert (line, message) == (2, "Unknown command “lable”")
    assert "“label”" in hint
    assert "say:… -speaker=lable;" in hint


@pytest.mark.parametrize("name", ["alice", "sam", "bgn", "webgal", "shore"])
def test_a_small_word_that_occurs_twice_is_a_speaker(game: ProjectWorkspace, name: str) -> None:
    assert diagnostics(game, f"{name}:x;\n雪乃:y;\n{name}:z;") == []


def test_a_small_word_that_another_scene_uses_is_a_speaker(tmp_path: Path) -> None:
    game = game_with(tmp_path, ["scene/other.txt"])
    (game.root / "game/scene/other.txt").write_text("shore:hello;\n")
    assert diagnostics(game, "shore:here too;") == []


@pytest.mark.parametrize(
    "speaker",
    ["雪乃", "Alice", "BGM", "Label", "End", "old man", "{hero}", "mc-1", "", "ショア", "mcDonald"],
)
def test_a_word_that_can_be_a_name_is_a_speaker(game: ProjectWorkspace, speaker: str) -> None:
    assert diagnostics(game, f"{speaker}:x;\n" * 2) == []


def test_a_speaker_named_in_an_argument_is_not_an_unknown_word(game: ProjectWorkspace) -> None:
    assert diagnostics(game, "say:hi -speaker=frobnicate;") == []


@pytest.mark.parametrize("word", [" changeBg", "changeBg ", "\u3000changeBg", " end"])
def test_blanks_around_a_command_make_it_a_speaker(game: ProjectWorkspace, word: str) -> None:
    command = word.strip()
    expected = f"“{command}” has spaces around it, so the engine treats it as a speaker"
    assert diagnostics_of_kind(game, f"{word}:;", "syntax") == [
        (1, expected, f"Write “{command}:” without spaces")
    ]


@pytest.mark.parametrize("word", ["changeBg：beach.png", "intro：a:b", "bgm：none"])
def test_a_full_width_colon_turns_a_command_into_speech(game: ProjectWorkspace, word: str) -> None:
    command = word.partition("：")[0]
    [(line, _, hint)] = diagnostics_of_kind(game, f"{word};", "syntax")
    assert (line, hint) == (1, f"Write “{command}:”")


def test_a_full_width_colon_in_speech_is_no_fault(game: ProjectWorkspace) -> None:
    assert diagnostics(game, "流程测试：开始;\n雪乃：你好;\n雪乃:他说：走;") == []


def test_a_single_mixed_case_word_close_to_a_command_is_unknown(
    game: ProjectWorkspace,
) -> None:
    expected = ("Unknown command “pixiInti”", "Did you mean “pixiInit”?")
    assert diagnostics_of_kind(
        game, "pixiInti;\npixiInit;\nEnd;\nand;\niPhone;\nwait;", "syntax"
    ) == [(1, *expected)]


def test_a_command_in_capitals_is_a_style_warning(game: ProjectWorkspace) -> None:
    expected = (1, "“ChangeBg” is treated as a speaker", "Did you mean “changeBg”?")
    assert diagnostics_of_kind(game, "ChangeBg:x;", "style") == [expected]
    assert diagnostics_of_kind(game, "ChangeBg:x;", "syntax") == []


def test_commands_of_newer_engines_are_known(game: ProjectWorkspace) -> None:
    assert diagnostics(game, "createFrame:map.html;\nremoveFrame:map;") == []
