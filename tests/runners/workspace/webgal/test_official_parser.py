"""The WebGAL grammar compared with the official parser: on our corpus and on generated scripts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest

from runners.workspace.webgal.parser import COMMANDS, parse
from tests.support.workspace.webgal_official import (
    EXPECTED,
    Compared,
    ParserUnavailable,
    comparable,
    corpus,
    is_placeholder,
    parse_officially,
)

PIECES = [
    *sorted(COMMANDS),
    "changeBG",
    "雪乃",
    "Alice",
    "{hero}",
    ":",
    ":",
    ":",
    ";",
    ";",
    "\\;",
    "\\:",
    "|",
    "\\|",
    " -",
    " -",
    " -",
    "-",
    "=",
    "=",
    "true",
    "false",
    "none",
    "0",
    "-5",
    "1e3",
    ".5",
    "5.",
    "0x1F",
    "0b1",
    "Infinity",
    "+Infinity",
    "1_000",
    "NaN",
    "v1.ogg",
    ".mp3",
    "wav",
    "a.wav",
    "toggle",
    " ",
    "  ",
    "\n",
    "\n",
    "\n",
    "\n ",
    "\n |",
    "\n -",
    "\n  -",
    "-concat",
    "\r",
    "\r\n",
    "\\",
    "\\\n",
    "\t",
    "\u3000",
    "\ufeff",
    "\x1c",
    "\x85",
    "\u2028",
    "你好",
    "a.txt",
    "bg.png",
    "(a>1)[b]->",
    '{"x":1}',
    "http://x",
    "；",
    "：",
    "\N{WATER WAVE}",
]


@pytest.fixture(scope="module")
def official_parser() -> Callable[[list[str]], list[list[tuple[int, Compared]]]]:
    """The official parser; where it cannot run, the tests are skipped with the reason."""
    try:
        parse_officially([""])
    except ParserUnavailable as why:
        pytest.skip(f"the official parser cannot be run: {why}")
    return parse_officially


def random_scripts(count: int) -> list[str]:
    """Return scripts of random pieces, identical in every run."""
    generator = random.Random(20261122)
    return ["".join(generator.choices(PIECES, k=generator.randint(0, 30))) for _ in range(count)]


@pytest.mark.slow
def test_the_stored_answers_match_the_official_parser(
    official_parser: Callable[[list[str]], list[list[tuple[int, Compared]]]],
) -> None:
    scenes = corpus()
    answers = official_parser(list(scenes.values()))
    now = {
        name: [statement for _, statement in expected]
        for name, expected in zip(scenes, answers, strict=True)
    }
    assert now == json.loads(EXPECTED.read_text())


@pytest.mark.slow
def test_generated_scripts_are_parsed_alike(
    official_parser: Callable[[list[str]], list[list[tuple[int, Compared]]]],
) -> None:
    scripts = random_scripts(6000)
    for script, expected in zip(scripts, official_parser(scripts), strict=True):
        parsed = [
            statement for statement in comparable(parse(script)) if not is_placeholder(statement)
        ]
        assert parsed == [statement for _, statement in expected], script


def test_statements_have_the_line_numbers_of_the_official_parser(
    official_parser: Callable[[list[str]], list[list[tuple[int, Compared]]]],
) -> None:
    # Left out: pieces that can make the parser drop a line, which shifts all later lines.
    scripts = [
        one for one in random_scripts(6000) if not {"\\", "\r"} & set(one) and "\n " not in one
    ]
    scripts += ["a;\nchoose:b:c\n |d:e\n -next;\n\nf;", "a\n -b\n -c;\nd;\n |e;"]
    for script, expected in zip(scripts, official_parser(scripts), strict=True):
        parsed = zip(parse(script), comparable(parse(script)), strict=True)
        assert [
            (statement.line, one) for statement, one in parsed if not is_placeholder(one)
        ] == expected, script
