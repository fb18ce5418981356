"""JSON Schemas as the doors enforce them: closed, linear-time patterns, no fetching, errors a
caller can act on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError, ValidationErrorKind
from pydantic import BaseModel

from decisions.errors import InvalidInput

Schema = dict[str, Any]
# Of a list: which part of it, and what an answer tells of the rest beside the part.
PAGE_INPUT: Schema = {
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 50},
    "offset": {"type": "integer", "minimum": 0, "maximum": 2**53 - 1, "default": 0},
}
_PART_TOLD: Schema = {
    "total": {"type": "integer", "minimum": 0},
    "hasMore": {"type": "boolean"},
    "nextCursor": {"type": ["string", "null"]},
}
MAX_TOLD = 5  # errors named in one answer
MAX_TEXT = 300  # characters of one error; values are not echoed whole


def closed(properties: Schema, required: list[str] | None = None) -> Schema:
    """Return the schema of an object that takes these fields alone; all are required unless said
    otherwise.
    """
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }


def page_schema(name: str, item: Schema) -> Schema:
    """Return the schema of an answer with a part of a list, which stands under `name`."""
    return closed({name: {"type": "array", "items": item}, **_PART_TOLD})


def compile_schema(schema: dict[str, Any], *, mask: str | None = None) -> Draft202012Validator:
    """Return a validator with a linear-time pattern engine that never resolves a remote reference.

    With `mask`, its errors tell that instead of the values that they are about.

    Raises:
        ValueError: The schema itself is wrong, refers elsewhere, or has a pattern outside the
            linear engine.
    """
    return Draft202012Validator(schema, pattern_options=RegexOptions(), offline=True, mask=mask)


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return a model's input schema by its JSON names, without pydantic's titles, which only cost
    tokens.
    """
    schema: dict[str, Any] = without_titles(model.model_json_schema(by_alias=True))
    return schema


def without_titles(node: Any) -> Any:
    """Return a schema without the titles that pydantic gives every part of it."""
    if isinstance(node, dict):
        # A "title" beside a "type" is pydantic's; inside "properties" it is a field of that name.
        return {
            key: {name: without_titles(value) for name, value in item.items()}
            if key in ("properties", "$defs") and isinstance(item, dict)
            else without_titles(item)
            for key, item in node.items()
            if not (key == "title" and isinstance(item, str))
        }
    return [without_titles(item) for item in node] if isinstance(node, list) else node


def has_secret_fields(schema: Mapping[str, Any]) -> bool:
    """Tell whether any field of the schema is marked `writeOnly`: sent in, never given out."""
    return any(
        (key == "writeOnly" and item is True)
        or any(
            has_secret_fields(one)
            for one in (item if isinstance(item, list) else [item])
            if isinstance(one, Mapping)
        )
        for key, item in schema.items()
    )


def secret_paths(schema: Mapping[str, Any], value: Any) -> set[tuple[str | int, ...]]:
    """Return where in a value the fields are that its schema marks `writeOnly`."""
    return set(_secret_paths(schema, value, schema.get("$defs", {}), ()))


def _secret_paths(
    node: Mapping[str, Any], value: Any, defs: Mapping[str, Any], path: tuple[str | int, ...]
) -> Iterator[tuple[str | int, ...]]:
    fields: Mapping[Any, Any]
    parts: Iterable[tuple[Any, Any]]
    if "$ref" in node:
        node = defs[str(node["$ref"]).rpartition("/")[2]]
    if node.get("writeOnly"):
        yield path
    for choice in (*node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ())):
        yield from _secret_paths(choice, value, defs, path)
    if isinstance(value, Mapping):
        fields, parts = node.get("properties", {}), value.items()
    elif isinstance(value, list):
        fields, parts = dict.fromkeys(range(len(value)), node.get("items", {})), enumerate(value)
    else:
        return
    for name, item in parts:
        yield from _secret_paths(fields.get(name, {}), item, defs, (*path, name))


def check(validator: Draft202012Validator, value: Any, *, where: str = "") -> None:
    """Refuse a value that the schema does not allow.

    Raises:
        InvalidInput: The message names the first error; details.errors[] has up to five {path,
            message}.
    """
    errors = []
    for error in validator.iter_errors(value):
        errors.append(_told(error, where))
        if len(errors) == MAX_TOLD:
            break
    if errors:
        first = errors[0]
        place = first["path"] or "the arguments"
        raise InvalidInput(f"{place}: {first['message']}", details={"errors": errors})


def coerce_integers(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a value that the schema allows, with JSON's 5.0 as 5 wherever an integer is wanted:
    to a schema both are one, to what counts and slices with it they are not.
    """
    if isinstance(value, float):
        return int(value) if value.is_integer() and _wants_integer(schema) else value
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        return {name: coerce_integers(item, fields.get(name, {})) for name, item in value.items()}
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        return [coerce_integers(item, schema["items"]) for item in value]
    return value


def _wants_integer(schema: Mapping[str, Any]) -> bool:
    wanted = schema.get("type")
    choices = (*schema.get("anyOf", ()), *schema.get("oneOf", ()))
    return (
        wanted == "integer"
        or (isinstance(wanted, list) and "integer" in wanted)
        or any(map(_wants_integer, choices))
    )


def _told(error: ValidationError, where: str) -> dict[str, str]:
    path = ".".join(filter(None, [where, *map(str, error.instance_path)]))
    message = error.message
    if isinstance(error.kind, ValidationErrorKind.Enum):  # whose own message names two and a number
        allowed = ", ".join(json.dumps(option, ensure_ascii=False) for option in error.kind.options)
        message = f"{message.partition(' is not one of ')[0]} is not one of {allowed}"
    if len(message) > MAX_TEXT:
        message = message[:MAX_TEXT] + "…"
    return {"path": path, "message": message}
