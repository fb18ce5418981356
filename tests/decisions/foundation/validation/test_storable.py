"""Values from outside are converted so that JSON columns and answers can hold them."""

from __future__ import annotations

import json
import math
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decisions.foundation.validation.json_input import check_value
from decisions.foundation.validation.storable import MAX_DEPTH, storable, storable_text

any_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(st.characters()) | st.integers(), inner, max_size=4)
    ),
    max_leaves=8,
)
plain_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(any_values)
def test_any_value_becomes_json_that_the_gate_accepts(value: Any) -> None:
    result = storable(value)
    check_value(result)
    assert orjson.loads(orjson.dumps(result)) == result
    json.dumps(result, allow_nan=False).encode()


@given(plain_json)
def test_plain_json_is_unchanged(value: Any) -> None:
    assert storable(value) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": math.nan, "b": [math.inf]}, {"a": None, "b": [None]}),
        ("a\0b", "a\ufffdb"),
        ({"k\0": "\ud800"}, {"k\ufffd": "?"}),
        (10**30, 1e30),
        (10**400, None),
        ({1: (2, 3)}, {"1": [2, 3]}),
        ("\\u0000", "\\u0000"),
    ],
)
def test_characters_that_no_database_accepts_are_replaced(value: Any, expected: Any) -> None:
    assert storable(value) == expected


def test_endless_nesting_is_cut() -> None:
    deep: Any = "end"
    for _ in range(5000):
        deep = [deep]
    text = json.dumps(storable(deep))
    assert text.count("[") <= MAX_DEPTH + 1


def test_text_keeps_every_whole_character() -> None:
    assert storable_text("漢字 😀\n\x7f") == "漢字 😀\n\x7f"
