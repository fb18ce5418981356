"""JSON for line-based streams: the text has one line for every line splitter, and keeps its
meaning."""

from __future__ import annotations

import json
from typing import Any

import orjson
from hypothesis import example, given
from hypothesis import strategies as st

from decisions.foundation.validation.json_output import escape_line_separators

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers(0, 9) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("a\u0085\u2028"), inner),
    max_leaves=6,
)


@given(JSON)
@example({"\u2028": ["\u0085 \\u0085", "\u2029", "Å\u0085…"]})
def test_the_json_is_one_line_and_keeps_its_meaning(value: Any) -> None:
    line = escape_line_separators(orjson.dumps(value))
    assert len(line.decode().splitlines()) == 1
    assert json.loads(line) == value
