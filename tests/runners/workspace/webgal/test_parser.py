"""The grammar parses our corpus as the official parser did, and knows the position of each
statement."""

from __future__ import annotations

import json
import math

import pytest

from runners.workspace.webgal.parser import (
    Option,
    dropped_line,
    parse,
    split_lines,
    split_options,
)
from tests.support.workspace.webgal_official import EXPECTED, comparable, corpus, is_placeholder

SCENES = corpus()
OFFICIAL = json.loads(EXPECTED.read_text())


def lines(text: str) -> list[tuple[int, int, str]]:
    """Return the lines of each statement, and its content."""
    return [(statement.line, statement.last_line, statement.content) for statement in parse(text)]


def test_every_scene_of_the_corpus_has_its_expected_statements() -> None:
    assert set(OFFICIAL) == set(SCENES)


@pytest.mark.parametrize("name", sorted(SCENES))
def test_a_scene_is_parsed_like_the_official_parser_does(name: str) -> None:
    ours = [
        statement for statement in comparable(parse(SCENES[name])) if not is_placeholder(statement)
    ]
    assert ours == OFFICIAL[name]


def test_continuation_lines_belong_to_the_statement_above_them() -> None:
    assert lines("a;\nchoose:b:c\n |d:e\n -next;\n\nf;") == [
        (1, 1, "a"),
        (2, 4, "b:c|d:e"),
        (5, 5, ""),
        (6, 6, "f"),
    ]


def test_a_line_with_concat_starts_its_own_statement() -> None:
    assert [statement[:2] for statement in lines("a;\n -concat;\n -next -concat;")] == [
        (1, 1),
        (2, 2),
        (3, 3),
    ]


def test_a_backslash_at_the_end_joins_the_next_line() -> None:
    assert lines("a\\\n  b;\nc;") == [(1, 2, "ab"), (3, 3, "c")]


def test_an_empty_line_before_a_continuation_is_not_a_statement() -> None:
    assert lines("\n -next;\na;") == [(2, 2, ""), (3, 3, "a")]


def test_a_statement_records_whether_a_semicolon_ends_it() -> None:
    ended = [statement.is_ended for statement in parse("a;\nb\nc\\;\nd\n -e;\n；")]
    assert ended == [True, False, False, True, False]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a;\nb\\", 2),
        ("a;\nb\n -c\\", 2),
        ("a;\nb\n -c\n -d\\", 2),
        ("a\\", 1),
        ("a;", None),
        ("a\\\n", None),
        ("\\", None),
        ("", None),
    ],
)
def test_a_statement_that_the_engine_drops_is_found(text: str, line: int | None) -> None:
    assert dropped_line(split_lines(text)) == line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0.0),
        ("0", 0.0),
        ("-1.5e3", -1500.0),
        ("0x1F", 31.0),
        ("0b11", 3.0),
        ("0o17", 15.0),
        (".5", 0.5),
        ("Infinity", math.inf),
        ("-Infinity", -math.inf),
        ("0x" + "f" * 400, math.inf),
        ("1_000", "1_000"),
        ("NaN", "NaN"),
        ("１", "１"),
        ("-0x1", "-0x1"),
        ("true", True),
        ("True", "True"),
    ],
)
def test_an_argument_has_the_same_value_as_in_the_engine(text: str, value: float | str) -> None:
    assert parse(f"wait: -a={text};")[0].arguments == (("a", value),)


def test_options_split_at_unescaped_bars_and_colons() -> None:
    assert list(split_options(r"a\|b:c|(x)->d\:e:f|g")) == [
        Option(r"a\|b", "c"),
        Option(r"(x)->d\:e", "f"),
        Option("g", ""),
    ]


def test_the_word_before_the_colon_is_returned_with_and_without_its_blanks() -> None:
    [statement] = parse(" 雪乃\u3000:你好;")
    assert (statement.head, statement.word, statement.arguments) == (
        " 雪乃\u3000",
        "雪乃",
        (("speaker", statement.head),),
    )
