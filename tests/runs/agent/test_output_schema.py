"""Which schemas a caller may pass as options.outputSchema."""

from __future__ import annotations

import time
from typing import Any

import pytest

from decisions.foundation.errors import InvalidInput
from runs.agent.output_schema import MAX_BYTES, check_output_schema
from tests.support.decisions.schemas import doubled_references

UNSAFE: dict[str, dict[str, Any]] = {
    "no schema": {"type": "nonsense"},
    "too long": {"description": "x" * MAX_BYTES},
    "an integer beyond 64 bits": {"maximum": 10**30},
    "half a surrogate pair": {"description": "\ud800"},
    "a reference elsewhere": {"$ref": "https://example.test/schema"},
    "a reference to a file": {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
    "a relative reference": {"$ref": "other.json#/a"},
    "a reference to itself": {"$ref": "#"},
    "a circle of references": {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
    },
    "a reference to nothing": {"$ref": "#/$defs/missing"},
    "a pattern that looks ahead": {"properties": {"a": {"pattern": "(?=b)"}}},
    "a pattern that looks back": {"pattern": r"(a)\1"},
    "a tower of repetitions": {"pattern": "(a+)+$"},
    "a tower as a property's name": {"patternProperties": {"(a*)*$": {}}},
    "a huge repetition": {"pattern": "((a{900}){900}){900}"},
    "too many patterns": {"patternProperties": {f"^a{n}.{{900}}$": {} for n in range(51)}},
    "forty levels of two references": doubled_references(40),
    "a chain of references": {
        "$ref": "#/$defs/a0",
        "$defs": {f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(2000)} | {"a2000": {}},
    },
    "a part that applies itself": {"anyOf": [{"type": "string"}, {"allOf": [{"$ref": "#"}]}]},
    "too many alternatives": {"anyOf": [{}] * 10_000},
    "references that another document renames": {
        "properties": {"a": {"$id": "b", "properties": {"c": {"$ref": "#/d"}}, "d": {}}}
    },
    "too many patterns apart": {"properties": {f"p{n}": {"pattern": ".{900}"} for n in range(51)}},
}


@pytest.mark.parametrize("case", UNSAFE)
def test_an_unsafe_schema_is_refused_quickly(case: str) -> None:
    started = time.monotonic()
    with pytest.raises(InvalidInput) as refused:
        check_output_schema(UNSAFE[case])
    assert time.monotonic() - started < 2
    assert refused.value.message.startswith("options.outputSchema: ")
    assert len(refused.value.message) < 300


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string", "pattern": "^[a-z]{1,20}$"}}},
        {"properties": {"next": {"$ref": "#"}}},  # a list, node by node
        {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}},
        doubled_references(9),
        {"pattern": "^[\\u4e00-\\u9fff]+$"},
        {"properties": {"pattern": {"type": "string"}, "$ref": {"type": "string"}}},
    ],
)
def test_common_schemas_are_accepted(schema: dict[str, Any]) -> None:
    check_output_schema(schema)
