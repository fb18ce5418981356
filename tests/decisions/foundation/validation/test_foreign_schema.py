"""What applying a caller's schema to a value costs: bounded before it is applied."""

from __future__ import annotations

import time
from typing import Any

import pytest

from decisions.foundation.errors import InvalidInput
from decisions.foundation.validation.foreign_schema import ForeignSchema
from decisions.foundation.validation.json_schema import check, compile_schema
from decisions.foundation.validation.schema_nodes import SchemaTooCostly
from tests.support.decisions.schemas import doubled_references

AGAIN = {"$ref": "#"}
CONSTANT = {"$ref": "#/$defs/a"}


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


# Schemas that are accepted, each with a value for which it takes too long.
TOO_MUCH: dict[str, tuple[dict[str, Any], Any]] = {
    "a schema that doubles with each level": ({"allOf": [{"items": AGAIN}] * 2}, nested(40)),
    "the same by unevaluated items": (
        {"anyOf": [{"items": AGAIN}, {"type": "string"}], "unevaluatedItems": False},
        nested(40),
    ),
    "a value that is nested deeper than any": ({"items": AGAIN}, nested(500)),
    "many states for each character": ({"pattern": "(a|b)*a(a|b){1000}c"}, "ab" * 10_000),
    "many options for each item": (
        {"items": {"enum": [{"a": n} for n in range(3000)]}},
        [{"a": 2999}] * 1000,
    ),
    "a large constant for each item": (
        {"$defs": {"a": {"const": [0] * 15_000}}, "items": {"allOf": [CONSTANT] * 1000}},
        [[0] * 15_000],
    ),
    "a large option for each item": (
        {"$defs": {"a": {"enum": [{"b": ["x"] * 9000}]}}, "items": {"allOf": [CONSTANT] * 1000}},
        [{"b": ["x"] * 9000}],
    ),
    "a long text for each item": (
        {"$defs": {"a": {"const": "x" * 200_000}}, "items": {"allOf": [CONSTANT] * 1000}},
        ["x" * 200_000],
    ),
    "long names for each item": (
        {"$defs": {"a": {"required": ["x" * 40_000]}}, "items": {"allOf": [CONSTANT] * 1000}},
        [{"x" * 40_000: 1}] * 3,
    ),
    "many names for each item": (
        {"items": {"properties": {f"k{n}": {} for n in range(3000)}}},
        [{}] * 10_000,
    ),
    "many comparisons": ({"allOf": [{"uniqueItems": True}] * 50}, [[n] for n in range(5000)]),
    "many alternatives": ({"items": {"anyOf": [{"type": "string"}] * 3000}}, ["a"] * 5000),
    "patterns of names": (
        {"items": {"patternProperties": {f"a.{{{n}}}$": {} for n in range(40)}}},
        [{"ab" * 50: 1}] * 1000,
    ),
}


@pytest.mark.parametrize("case", TOO_MUCH)
def test_a_schema_is_not_applied_to_a_value_for_which_it_takes_too_long(case: str) -> None:
    schema, value = TOO_MUCH[case]
    measured = ForeignSchema(schema)
    started = time.thread_time()
    with pytest.raises(SchemaTooCostly):
        measured.errors(value, at_most=20)
    assert time.thread_time() - started < 1


@pytest.mark.parametrize(
    ("schema", "value", "listed"),
    [
        (doubled_references(9), 1, 20),
        ({"items": {"type": "string"}}, list(range(500)), 20),
        ({"items": {"type": "string"}}, list(range(50_000)), 1),
        ({"required": [f"k{n}" for n in range(5000)]}, {f"z{n}": 1 for n in range(5000)}, 1),
        ({"allOf": [{"type": "string"}] * 4000}, {"a": list(range(20_000))}, 1),
        ({"anyOf": [{"type": "string"}] * 4000}, {"a": list(range(20_000))}, None),
        (
            {"items": {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}},
            [*[{"a": None}] * 5000, {"a": 1}],
            1,
        ),
    ],
)
def test_few_errors_of_a_value_are_kept_and_of_a_large_one_the_first(
    schema: dict[str, Any], value: Any, listed: int | None
) -> None:
    started = time.thread_time()
    errors = ForeignSchema(schema).errors(value, at_most=20)
    assert time.thread_time() - started < 1
    assert (errors if errors is None else len(errors)) == listed


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"type": "integer"}}, list(range(50_000))),
        ({"items": {"enum": [{"a": [1] * 500}, "no"]}}, ["no", {"a": [1] * 500}] * 50),
        ({"properties": {"left": AGAIN, "right": AGAIN}}, {"left": {"left": {}}, "right": {}}),
        ({"items": {"$ref": "#/$defs/a%20b"}, "$defs": {"a b": {"type": "integer"}}}, [1, 2]),
        ({"pattern": "^[\\u4e00-\\u9fff]+$", "uniqueItems": True}, "中文"),
        ({"propertyNames": {"pattern": "^[a-z]+$"}, "additionalProperties": True}, {"a": 1}),
    ],
)
def test_a_value_that_fits_has_no_errors(schema: dict[str, Any], value: Any) -> None:
    assert ForeignSchema(schema).errors(value, at_most=20) == []


@pytest.mark.parametrize("value", [[1] * 90_000, {f"k{n}": 1 for n in range(90_000)}])
def test_a_large_invalid_input_is_refused_by_its_first_error(value: Any) -> None:
    text = {"type": "string"}
    validator = compile_schema({"items": text, "additionalProperties": text})
    started = time.thread_time()
    with pytest.raises(InvalidInput) as refused:
        check(validator, value)
    assert time.thread_time() - started < 0.5
    assert len(refused.value.details["errors"]) == 1
