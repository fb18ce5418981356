"""Results shortened to a size: below the budget, still valid, and cut between characters."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decisions.foundation.validation.json_schema import compile_schema
from runs.task_templates.registry import list_templates
from runs.task_templates.truncation import answer_schema, shorten, shorten_result

BUDGET = 4096
MANY_TYPES = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["page of a kind that has a long name " * 4]},
        "id": {"type": "string", "pattern": "^id_x*$"},
        "when": {"type": "string", "minLength": 30},
        "pair": {"type": "array", "items": {"type": "string"}, "minItems": 2},
        "maybe": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/text"}]},
        "texts": {"type": "array", "items": {"$ref": "#/$defs/text"}},
        "table": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "required": ["kind", "id", "pair", "texts"],
    "additionalProperties": False,
    "$defs": {
        "text": {
            "type": "object",
            "properties": {"text": {"type": "string"}, "note": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        }
    },
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "pieces": MANY_TYPES,
    **{item.template_id: dict(item.result_schema) for item in list_templates()},
}
FAST = ("pieces", "batch_extract_pages")
PARAMETERS = [
    name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in SCHEMAS
]
# Long texts are created by repetition: hypothesis itself generates short ones.
LONG = st.builds(lambda text, times: text * times, st.text(), st.sampled_from([0, 1, 40, 3000]))
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | LONG,
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(LONG, inner, max_size=8),
    max_leaves=20,
)


def values_of(schema: Any, root: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for values that are valid by one of the schemas above."""
    if "$ref" in schema:
        return values_of(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "pattern" in schema:
        return st.from_regex(schema["pattern"].replace("$", r"\Z"), fullmatch=True)
    branches = schema.get("anyOf")
    if branches:
        return st.one_of(*(values_of(item, root) for item in branches))
    types = schema.get("type", "object")
    names = [types] if isinstance(types, str) else types
    return st.one_of(*(_of_type(name, schema, root) for name in names))


def _of_type(name: str, schema: Any, root: dict[str, Any]) -> st.SearchStrategy[Any]:
    if name == "object" and "properties" in schema:
        optional = {key: values_of(item, root) for key, item in schema["properties"].items()}
        required = {key: optional.pop(key) for key in schema.get("required", ()) if key in optional}
        return st.fixed_dictionaries(required, optional=optional)
    if name == "object":
        inner = schema.get("additionalProperties", True)
        values = values_of(inner, root) if isinstance(inner, dict) else ANY
        return st.dictionaries(LONG, values, max_size=30)
    if name == "array":
        items = st.lists(values_of(schema.get("items", {}), root), max_size=30)
        minimum = schema.get("minItems", 0)
        return items.map(lambda drawn: drawn * 40).filter(lambda drawn: len(drawn) >= minimum)
    if name == "string":
        minimum = schema.get("minLength", 0)
        return LONG.filter(lambda text: len(text) >= minimum)
    plain = {"integer": st.integers(0, 2**53), "number": st.floats(0, 1), "boolean": st.booleans()}
    return plain.get(name, st.none())


@pytest.mark.parametrize("name", PARAMETERS)
@given(st.data())
@settings(max_examples=20)
def test_a_shortened_result_is_below_the_budget_and_still_valid(
    name: str, data: st.DataObject
) -> None:
    schema = SCHEMAS[name]
    value = data.draw(values_of(schema, schema).filter(lambda drawn: isinstance(drawn, dict)))
    short = shorten(value, BUDGET, schema)
    assert compile_schema(schema).is_valid(value)
    assert compile_schema(schema).is_valid(short)
    assert len(orjson.dumps(short)) <= BUDGET


@pytest.mark.slow
@given(st.dictionaries(LONG, ANY, max_size=20), st.integers(2, 10_000))
@settings(max_examples=150)
def test_any_value_is_shortened_to_the_budget(value: dict[str, Any], budget: int) -> None:
    short = shorten(value, budget)
    size = len(orjson.dumps(value))
    assert len(orjson.dumps(short)) <= budget
    assert short == value if size <= budget else short != value


@given(st.text(alphabet="漢é😀a", min_size=6, max_size=12))
@settings(max_examples=30)
def test_texts_are_cut_on_whole_characters(piece: str) -> None:
    text = piece * 500
    cut = shorten({"text": text}, 2048)["text"]
    assert cut.endswith("…")
    assert text.startswith(cut[:-1])
    assert len(cut) > 100


def test_long_texts_are_shortened_before_items_are_removed() -> None:
    items = [{"url": f"u{n}", "text": "x" * 9000} for n in range(30)]
    short = shorten({"items": items}, 16_384)
    assert [item["url"] for item in short["items"]] == [item["url"] for item in items]


def test_a_small_result_is_unchanged() -> None:
    value = {"a": ["漢"] * 9}
    assert shorten_result(value, 100, "art_1") is value


def test_the_marks_count_too_and_are_in_the_published_schema() -> None:
    schema = SCHEMAS["batch_extract_pages"]
    item = {"url": "u" * 900, "success": True, "error": None}
    counts = {"total": 400, "succeeded": 400, "failed": 0}
    short = shorten_result({"summary": counts, "items": [item] * 400}, BUDGET, "art_1", schema)
    assert len(orjson.dumps(short)) <= BUDGET
    assert (short["truncated"], short["artifactId"], short["summary"]) == (True, "art_1", counts)
    closed = {**answer_schema(schema), "additionalProperties": False}
    assert compile_schema(closed).is_valid(short)


def test_shortening_by_a_schema_that_refers_to_itself_ends() -> None:
    assert shorten({"a": "x" * 99}, 20, {"$ref": "#"}) == {}
