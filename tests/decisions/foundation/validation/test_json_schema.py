"""The JSON schemas that REST and MCP enforce: closed, linear in time, with errors a caller can act
on."""

from __future__ import annotations

import time
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator
from pydantic import Field

from decisions.foundation.errors import InvalidInput
from decisions.foundation.validation.json_schema import check, compile_schema, schema_of
from runners.tools.base import Closed
from runs.api.schemas import runs as schemas


class Stop(Closed):
    """A stop of a trip."""

    title: str = Field(min_length=1, description="Its title.")
    kind: str = Field(default="x", pattern="^[a-z]+$")


class Trip(Closed):
    """A trip; one field has a name that pydantic uses itself."""

    title: str
    stops: list[Stop] = Field(min_length=1)
    tags: dict[str, int] = Field(default_factory=dict)


def refused(value: Any, model: type[Closed] = Trip) -> InvalidInput:
    with pytest.raises(InvalidInput) as raised:
        check(compile_schema(schema_of(model)), value, where="inputs")
    return raised.value


def test_a_models_schema_is_closed_and_has_no_generated_titles() -> None:
    schema = schema_of(Trip)
    assert schema["additionalProperties"] is False
    assert "title" not in schema
    assert set(schema["properties"]) == {"title", "stops", "tags"}
    assert "title" not in schema["$defs"]["Stop"]["properties"]["kind"]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (None, "inputs"),
        ([], "inputs"),
        ({}, "inputs"),
        ({"title": 1, "stops": []}, "inputs.stops"),
        ({"title": "t", "stops": [{"title": ""}]}, "inputs.stops.0.title"),
        ({"title": "t", "stops": [{"title": "t", "kind": "A"}]}, "inputs.stops.0.kind"),
        ({"title": "t", "stops": [{"title": True}]}, "inputs.stops.0.title"),
        ({"title": "t", "stops": [{"title": "t"}], "tags": {"a": True}}, "inputs.tags.a"),
        ({"title": "t", "stops": [{"title": "t"}], "tags": {"a": 1.5}}, "inputs.tags.a"),
    ],
)
def test_the_message_names_the_location(value: Any, path: str) -> None:
    refusal = refused(value)
    assert path in [error["path"] for error in refusal.details["errors"]]


def test_at_most_five_errors_are_reported_and_no_value_completely() -> None:
    error = refused({"title": "t", "stops": [{"title": 5, "kind": "A" * 10_000}] * 20})
    assert len(error.details["errors"]) == 5
    assert len(error.message) < 700


def test_a_pattern_matches_the_whole_string() -> None:
    refused({"title": "t", "kind": "abc\n"}, Stop)
    refused({"title": "t", "kind": "abc\nDEF"}, Stop)


def test_a_misspelt_name_is_reported_with_the_correct_one() -> None:
    error = refused({"title": "t", "stopps": []})
    assert "stopps" in error.message or "stopps" in str(error.details)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", "(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_a_pattern_takes_linear_time(pattern: str) -> None:
    validator = compile_schema({"type": "string", "pattern": pattern})
    started = time.monotonic()
    validator.is_valid("a" * 100_000 + "!")
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"$ref": "http://127.0.0.1:1/schema"},
        {"$ref": "file:///etc/passwd"},
        {"pattern": "(?=a)b"},
        {"pattern": r"(a)\1"},
        {"pattern": "("},
        {"pattern": "((a{1000}){1000}){1000}"},
        {"minLength": -1},
        {"required": "a"},
    ],
)
def test_a_schema_that_cannot_be_applied_is_an_error_at_once(schema: dict[str, Any]) -> None:
    started = time.monotonic()
    with pytest.raises(ValueError, match=r"\S"):
        compile_schema(schema)
    assert time.monotonic() - started < 2


SCHEMAS = {
    name: value
    for name, value in vars(schemas).items()
    if name.isupper() and not name.startswith("_")  # a private one is a part of a schema
}


@pytest.mark.parametrize(
    "name", [name for name, value in SCHEMAS.items() if isinstance(value, dict)]
)
def test_every_schema_of_the_contract_is_valid_and_closed(name: str) -> None:
    schema = SCHEMAS[name]
    assert isinstance(compile_schema(schema), Draft202012Validator)
    if name.endswith(("_INPUT", "_OUTPUT")):
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert not {"oneOf", "anyOf", "allOf"} & set(schema)  # some hosts drop such tools


def test_a_refused_choice_lists_all_allowed_values() -> None:
    choice = {"type": "object", "properties": {"way": {"enum": ["left", "right", "on", None]}}}
    with pytest.raises(InvalidInput) as raised:
        check(compile_schema(choice), {"way": "back"})
    assert raised.value.message == 'way: "back" is not one of "left", "right", "on", null'


def test_an_error_in_an_optional_value_names_its_field() -> None:
    inner = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}
    optional = {"anyOf": [inner, {"type": "null"}]}
    validator = compile_schema({"properties": {"a": optional}})
    check(validator, {"a": None})
    for value, path in (({"n": 0}, "inputs.a.n"), ({"n": "x"}, "inputs.a.n"), (5, "inputs.a")):
        with pytest.raises(InvalidInput) as refusal:
            check(validator, {"a": value}, where="inputs")
        assert refusal.value.details["errors"][0]["path"] == path
        assert "anyOf" not in refusal.value.message


def test_an_error_in_one_of_two_alternatives_names_the_value() -> None:
    validator = compile_schema({"anyOf": [{"type": "string"}, {"minimum": 3}, {"type": "null"}]})
    with pytest.raises(InvalidInput, match="anyOf"):
        check(validator, 2)
