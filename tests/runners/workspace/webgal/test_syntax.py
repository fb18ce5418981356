"""Diagnostics for unterminated statements, broken JSON, statements that the engine drops, and
style."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from runners.workspace.workspace import ProjectWorkspace
from tests.support.workspace.webgal import diagnostics, diagnostics_of_kind, game_with, sample_game


@pytest.fixture
def game(tmp_path: Path) -> ProjectWorkspace:
    """A game with one background and one figure."""
    return game_with(tmp_path, ["background/beach.png", "figure/yukino.png"])


def test_a_statement_without_a_semicolon_is_a_syntax_error(game: ProjectWorkspace) -> None:
    expected = ("The statement does not end with “;”", "Put “;” at the end of the line")
    assert diagnostics_of_kind(game, "雪乃:你好\nend;\n:旁白", "syntax") == [
        (1, *expected),
        (3, *expected),
    ]


@pytest.mark.parametrize(
    "text",
    ["WebGal:我会显示出来：\\:\\,\\.\\;不信你看看", ":旁白\\;", "雪乃:a\\;b\n -next", "a\\;b\n;"],
)
def test_a_statement_whose_semicolons_are_all_escaped_ends_with_its_line(
    game: ProjectWorkspace, text: str
) -> None:
    assert diagnostics_of_kind(game, text, "syntax") == []


def test_an_escaped_semicolon_excuses_only_its_own_statement(game: ProjectWorkspace) -> None:
    assert [line for line, *_ in diagnostics_of_kind(game, "a\\;b\nc\nd;", "syntax")] == [2]


def test_a_full_width_semicolon_is_reported_as_such(game: ProjectWorkspace) -> None:
    [(line, _, hint)] = diagnostics_of_kind(game, "你好；", "syntax")
    assert (line, "full-width" in hint) == (1, True)


def test_the_missing_semicolon_is_reported_at_the_last_line_of_a_statement(
    game: ProjectWorkspace,
) -> None:
    assert [
        line for line, *_ in diagnostics_of_kind(game, "a;\n雪乃:b\n -next\n -notend\nc;", "syntax")
    ] == [4]


@pytest.mark.parametrize("text", ["", "\n\n", ";", "; 注释", "a;; b", "a; b", "雪乃:a\n -next;"])
def test_comments_and_blank_lines_need_no_semicolon(game: ProjectWorkspace, text: str) -> None:
    assert diagnostics_of_kind(game, text, "syntax") == []


@pytest.mark.parametrize(
    "statement",
    [
        'setTransform:{"position":{"x":1}} -target=fig-left;',
        "setTransform:{};",
        'setTempAnimation:[{"duration":0},{"alpha":0}] -next;',
        "setTransform:;",
        "setTransform:none;",
        'setTransform:{"position":{"x":{posX},"y":{$stage.y}}};',
        'setTransform: {"x":-5} ;',
        'changeFigure:yukino.png -transform={"position":{"x":-5}};',
        "changeFigure:none -transform;",
        'setAnimation:{"not json -target=a;',
        "setComplexAnimation:{;",
    ],
)
def test_json_that_the_engine_accepts_is_no_fault(game: ProjectWorkspace, statement: str) -> None:
    assert diagnostics(game, statement) == []


@pytest.mark.parametrize(
    ("statement", "context", "character"),
    [
        ("setTransform:{x:1};", "setTransform", 2),
        ('setTransform:{"x":1;', "setTransform", 7),
        ("setTempAnimation:[{}},];", "setTempAnimation", 4),
        ('setTransform:{"x":NaN};', "setTransform", 1),
        ('changeBg:beach.png -transform={"x":};', "-transform", 6),
        ("setTransform:" + "[" * 5000 + ";", "setTransform", 1),
    ],
)
def test_broken_json_is_a_syntax_error(
    game: ProjectWorkspace, statement: str, context: str, character: int
) -> None:
    [(_, message, hint)] = diagnostics_of_kind(game, statement, "syntax")
    assert message == f"“{context}” is not valid JSON (at character {character})"
    assert hint == "Check the quotes, commas and brackets"


def test_json_cut_off_at_a_negative_number_is_reported_as_such(game: ProjectWorkspace) -> None:
    [(_, _, hint)] = diagnostics_of_kind(game, 'setTransform:{"position":{"x": -5}};', "syntax")
    assert hint == "Leave no space before a minus sign: “ -” begins an argument"


def test_a_statement_that_the_engine_drops_is_reported(game: ProjectWorkspace) -> None:
    [(line, message, _)] = diagnostics_of_kind(game, "a;\n雪乃:b;\\", "syntax")
    assert (line, message.startswith("The last line ends with a backslash")) == (2, True)


def test_tabs_and_trailing_blanks_are_style_warnings(game: ProjectWorkspace) -> None:
    expected = [
        (line, message)
        for line, message, _ in diagnostics_of_kind(game, "a;\n雪乃:\tb;\r\nc; \n\u3000\n", "style")
    ]
    trailing = "The line has trailing whitespace"
    assert expected == [(2, "The line contains a tab"), (3, trailing), (4, trailing)]


def test_a_line_that_continues_after_the_semicolon_is_reported(game: ProjectWorkspace) -> None:
    [(line, message, _)] = diagnostics_of_kind(game, "changeBg:beach.png;\n -next;", "style")
    assert (line, "so this line is a comment" in message) == (2, True)


def test_a_byte_order_mark_is_not_part_of_the_first_statement(game: ProjectWorkspace) -> None:
    assert diagnostics(game, "\ufeffchangeBg:beach.png;") == []


def test_diagnostics_are_in_the_order_of_lines(game: ProjectWorkspace) -> None:
    expected = diagnostics(game, "changeBg:a.png \nfrobnicate:x;\t\njumpLabel:b\n")
    assert [(diagnostic["line"], diagnostic["kind"]) for diagnostic in expected] == [
        (1, "syntax"),
        (1, "resource"),
        (1, "style"),
        (2, "syntax"),
        (2, "style"),
        (2, "style"),
        (3, "syntax"),
        (3, "resource"),
    ]


def test_statements_of_known_commands_and_speakers_have_no_false_syntax_error(
    tmp_path: Path,
) -> None:
    game, rng = sample_game(tmp_path), random.Random(7)
    heads = ["雪乃:", "Alice:", "{hero}:", ":", "", "say:", "intro:", "wait:", "bgm:", "if:"]
    words = ["你好", "a=1", "|", ":", "：", "；", "\\;", "none", "http://x", "{v}", "(", "1-2"]
    arguments = ["", "", " -next", " -v1.wav", " -a=-1", " -when=a>1", " -x={y}", "\n -next"]
    comments = ["", "", " 注释", "; 再注释", " a\\;b"]
    lines = [
        rng.choice(heads)
        + "字"
        + "".join(rng.choices(words, k=rng.randint(0, 5)))
        + "".join(rng.choices(arguments, k=2))
        + ";"
        + rng.choice(comments)
        for _ in range(3000)
    ]
    assert diagnostics_of_kind(game, "\n".join(lines), "syntax") == []


@pytest.mark.parametrize(
    "text",
    [
        "wait: -a=" + "1" * 900_000 + "x;",
        "wait: -a=" + "1" * 400_000 + "." + "1" * 400_000 + "x;",
        "jumpLabel:x;",
        "a" + " " * 900_000 + "b;",
        "setTransform:" + "{a" * 400_000 + ";",
        "aB" * 400_000 + ";",
    ],
    ids=["digits", "fraction", "label", "blanks", "braces", "word"],
)
def test_a_pathological_script_takes_linear_time(tmp_path: Path, text: str) -> None:
    game = game_with(tmp_path, ["scene/odd.txt"])
    (game.root / "game/scene/odd.txt").write_text("label:" + " " * 900_000)
    assert len(diagnostics(game, text)) <= 1  # quadratic time would not end
