"""The plain text of Markdown, as one line of a list shows it."""

from __future__ import annotations

import time

import pytest

from decisions.foundation.presentation.markdown import LONGEST, plain_lines, plain_text


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("The **cheapest** is _B_ for `9 EUR`.", "The cheapest is B for 9 EUR."),
        ("See [the list](https://a.example/x_(y)?a=1 'Title') now", "See the list now"),
        (
            "![A chart](https://a.example/c.png) and <https://a.example/>",
            "A chart and https://a.example/",
        ),
        ("# Prices\n\n- one\n* two\n1. three\n> four", "Prices one two 1. three four"),
        ("| Name | Price |\n|------|:-----:|\n| A \\| B | 9 |", "Name · Price A | B · 9"),
        ('```json\n{"a": 1}\n```\n---\nDone', '{"a": 1} Done'),
        ("- [x] done ~~not~~", "done not"),
        ("cut off at [the list](https://a.exam", "cut off at the list"),
        ("read_page_content, 2 * 3 * 4, a|b and *", "read_page_content, 2 * 3 * 4, a|b and *"),
        ("\\*not emphasis\\*", "*not emphasis*"),
        ("**中文**：`值`", "中文：值"),
        ("", ""),
    ],
)
def test_the_marks_are_left_out_and_the_words_are_kept(markdown: str, text: str) -> None:
    assert plain_text(markdown) == text


def test_a_link_keeps_its_address_where_a_person_decides_by_it() -> None:
    question = (
        "**Which**?\n- [this page](https://a.example/)\n- [https://b.example](https://b.example)"
    )
    assert plain_lines(question) == "Which?\nthis page (https://a.example/)\nhttps://b.example"


@pytest.mark.parametrize(
    "mark", ["[", "*", "**a", "`", "_a ", "![](", "|", "~~", "<https://", "[a](", "> "]
)
def test_a_long_text_of_marks_takes_no_time(mark: str) -> None:
    began = time.process_time()
    plain_text(mark * LONGEST)
    assert time.process_time() - began < 1
