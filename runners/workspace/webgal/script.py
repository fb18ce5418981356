"""The script that is checked: its lines, its statements, and what its words and labels are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from runners.workspace.webgal.parser import Statement, split_lines, statements


class SceneScript:
    """The text of a script.

    Iterating it parses it: no statement is kept. 100 000 kept ones would make a garbage collection
    take 80 ms, during which no thread of the process runs.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = split_lines(text)

    def __iter__(self) -> Iterator[Statement]:
        """Yield the statements in order, without comments and blank lines."""
        return (one for one in statements(self.text) if one.command != "comment")

    @cached_property
    def word_uses(self) -> Counter[str]:
        """How many statements have a word before their `:`."""
        return Counter(one.word for one in self if one.head is not None)

    @cached_property
    def labels(self) -> frozenset[str]:
        """The labels that the script defines."""
        found = statements(self.text, "label")
        return frozenset(one.content for one in found if one.command == "label")
