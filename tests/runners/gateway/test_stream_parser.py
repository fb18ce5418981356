"""Updates are extracted from a streamed response, however its bytes are split."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.gateway.stream_parser import UpdateSplitter

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def elements_in(raw: bytes, size: int) -> list[bytes]:
    """Return the elements found in a response that arrives in chunks of this size."""
    splitter = UpdateSplitter()
    return [
        element for at in range(0, len(raw), size) for element in splitter.feed(raw[at : at + size])
    ]


@pytest.mark.slow
@given(updates=st.lists(VALUES, max_size=8), size=st.integers(1, 40), spaced=st.booleans())
def test_every_element_is_found_once_and_in_order(
    updates: list[Any], size: int, spaced: bool
) -> None:
    response = {"updates": updates, "result": {"ok": True, "output": updates}}
    raw = json.dumps(response, indent=1 if spaced else None, ensure_ascii=spaced).encode()
    assert [json.loads(element) for element in elements_in(raw, size)] == updates


@pytest.mark.parametrize("element", ['"a"', '"\\\\"', '{"delta":"}"}', '{"a":{"b":[1]}}', "[[]]"])
def test_an_element_is_returned_as_soon_as_its_last_byte_arrives(element: str) -> None:
    splitter = UpdateSplitter()
    assert splitter.feed(b'{"updates":[' + element[:-1].encode()) == []
    assert splitter.feed(element[-1:].encode()) == [element.encode()]
    assert splitter.feed(b" ,") == []
    assert splitter.feed(element.encode()) == [element.encode()]
    assert splitter.feed(b']},"result":') == []


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_delimiters_inside_strings_end_no_element(size: int) -> None:
    updates = ['a",]}', "\\", '\\"', "[{", {"delta": '"],"result":'}]
    raw = orjson.dumps({"updates": updates, "result": {"updates": [1, 2]}})
    assert [orjson.loads(element) for element in elements_in(raw, size)] == updates


@pytest.mark.parametrize(
    "raw",
    [
        b'{"result":{"ok":true,"output":1},"updates":["a"]}',
        b'{"ok":true,"output":["a","b"]}',
        b'["a","b"]',
        b'{"updates":{"a":["b","c"]}}',
        b"{" + b" " * 5000 + b'"updates":["a"]}',
        b"",
    ],
)
def test_a_response_that_does_not_start_with_updates_is_ignored(raw: bytes) -> None:
    assert elements_in(raw, 7) == []


def test_elements_nested_too_deep_are_ignored() -> None:
    assert elements_in(b'{"updates":["a",' + b"[" * 100_000, 4096) == [b'"a"']


def test_updates_with_any_number_of_commas_and_brackets_arrive_one_by_one() -> None:
    line = b'"[1, 2, 3]"'
    elements = elements_in(b'{"updates":[' + b",".join([line] * 100_000) + b"]", 65536)
    assert elements == [line] * 100_000
