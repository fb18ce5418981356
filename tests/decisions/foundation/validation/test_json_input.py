"""JSON input validation: which bytes every API and transport accepts."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decisions.foundation.errors import BodyTooLarge, InvalidInput, MalformedBody
from decisions.foundation.validation.json_input import (
    BODY_LIMIT,
    CALL_LIMIT,
    MAX_DEPTH,
    MAX_VALUES,
    check_value,
    load_json,
)

REFUSED = {
    "nothing": b"",
    "blank": b"  \n",
    "truncated": b'{"templateId": ',
    "two values": b"{} {}",
    "not UTF-8": b'{"a": "\xff"}',
    "UTF-16": bytes.fromhex("fffe7b007d00"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "NaN": b'{"a": NaN}',
    "infinity": b"[Infinity]",
    "minus infinity": b"[-Infinity]",
    "a float out of range": b"[1e999]",
    "an integer out of range": b"[9223372036854775808]",
    "a very long integer": b"[" + b"9" * 5000 + b"]",
    "the same key twice": b'{"a": 1, "a": 2}',
    "the same key twice, deep inside": b'{"a": [{"b": 1, "b": 1}]}',
    "the same key twice, once escaped": b'{"a": 1, "\\u0061": 2}',
    "NUL": b'{"a": "x\\u0000y"}',
    "NUL in a key": b'{"x\\u0000y": 1}',
    "half a surrogate pair": b'{"a": "\\ud800"}',
    "half a surrogate pair in a key": b'{"\\udfff": 1}',
    "too deep": b"[" * 33 + b"]" * 33,
    "a depth bomb": b"[" * 100_000,
    "a closed depth bomb": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "too many values": b"[" + b"1," * 100_001 + b"1]",
    "too many keys": json.dumps({str(n): n for n in range(60_000)}).encode(),
    "a comment": b"{} // so",
    "a single quote": b"{'a': 1}",
    "a trailing comma": b"[1,]",
    "a control character in a text": b'["\x01"]',
}


@pytest.mark.parametrize("value", [b"1", b"[]", b'{"a":1}', b'"["', b'"\\""', b'"\\\\"', b'"x"'])
def test_json_of_too_many_values_is_refused_before_it_is_parsed(
    value: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("it was parsed"))
    with pytest.raises(MalformedBody, match="more than 100000 values"):
        load_json(b"[" + b",".join([value] * (MAX_VALUES + 2)) + b"]", limit=CALL_LIMIT)


def test_brackets_commas_and_quotes_in_a_text_are_no_values() -> None:
    text = '[{,"\\' * MAX_VALUES * 2
    assert load_json(json.dumps([text]).encode(), limit=CALL_LIMIT) == [text]


@pytest.mark.parametrize("case", REFUSED)
def test_unacceptable_json_is_refused_quickly(case: str) -> None:
    started = time.monotonic()
    with pytest.raises(MalformedBody) as refused:
        load_json(REFUSED[case])
    assert time.monotonic() - started < 2
    assert (refused.value.code, len(refused.value.message) < 200) == ("INVALID_PARAMETER", True)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**63),
        2**63 - 1,
        1.5,
        -0.0,
        "",
        "漢字 😀 \x7f",
        [],
        {},
        {"": ""},
        {"a": {"b": [1, {"c": None}]}},
    ],
)
def test_valid_json_is_parsed_unchanged(value: object) -> None:
    assert load_json(json.dumps(value).encode()) == value


def test_input_at_the_limits_is_accepted() -> None:
    deep = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    many = json.dumps([0] * (MAX_VALUES - 1)).encode()
    long = json.dumps("x" * (BODY_LIMIT - 2)).encode()
    assert load_json(deep)
    assert len(load_json(many)) == MAX_VALUES - 1
    assert len(load_json(long)) == BODY_LIMIT - 2


def test_a_body_over_the_limit_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(BodyTooLarge) as refused:
        load_json(b"[" * (BODY_LIMIT + 1))
    assert refused.value.http_status == 413


@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_or_refused(raw: bytes) -> None:
    try:
        value = load_json(raw)
    except InvalidInput:
        return
    check_value(value)
    json.dumps(value).encode()


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), inner
            )
        ),
        max_leaves=20,
    )
)
def test_json_written_by_another_library_is_parsed(value: object) -> None:
    assert load_json(json.dumps(value).encode()) == value
    assert load_json(json.dumps(value, ensure_ascii=False, indent=1).encode()) == value
