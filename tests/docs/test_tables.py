"""Each Markdown table of README and docs is one table, whose rows have a cell for each column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from tests.docs.samples import BLOCK, documents, name_of

SEPARATOR = re.compile(r"\|( *:?-+:? *\|)+")


def cells(row: str) -> int:
    """Return how many cells a row has: GitHub splits at each pipe that no backslash escapes."""
    return len(re.split(r"(?<!\\)\|", row.strip().strip("|")))


def problems(text: str) -> Iterator[str]:
    """Yield what is wrong with the tables of a text."""
    lines = BLOCK.sub("", text).splitlines()
    for is_table, rows in groupby(lines, lambda line: line.lstrip().startswith("|")):
        if not is_table:
            continue
        header, *others = rows
        if not others or not SEPARATOR.fullmatch(others[0].strip()):
            yield f"no header above: {header[:80]}"
            continue
        yield from (f"columns: {row[:80]}" for row in others if cells(row) != cells(header))


def test_a_table_that_is_split_or_lacks_a_cell_is_noticed() -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert list(problems(table)) == []
    assert list(problems(table + "\n| 3 | 4 |\n")) == ["no header above: | 3 | 4 |"]
    assert list(problems(table + "| 3 |\n| `a\\|b` | 4 |\n")) == ["columns: | 3 |"]


def test_each_table_renders_whole() -> None:
    found = [
        f"{name_of(path)}: {one}" for path in documents() for one in problems(path.read_text())
    ]
    assert found == []
