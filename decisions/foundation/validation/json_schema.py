"""JSON Schema validation for every API: closed objects, linear-time patterns, no remote references,
errors that name the field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError, ValidationErrorKind
from pydantic import BaseModel

from decisions.foundation.errors import InvalidInput

Schema = dict[str, Any]
# Fields that many calls have.
ID: Schema = {"type": "string", "minLength": 1, "maxLength": 64}
TEXT: Schema = {"type": "string"}
BOOL: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
OFFSET: Schema = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}
MS: Schema = {"type": "integer", "minimum": 0}  # a time in Unix milliseconds, or a duration
MS_OR_NULL: Schema = {"type": ["integer", "null"]}
# Pagination: the arguments of a list, and the fields of its response beside the items.
PAGE_PROPERTIES: Schema = {
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 50},
    "offset": {**OFFSET, "default": 0},
}
_PAGE_OUTPUT: Schema = {
    "total": COUNT,
    "hasMore": BOOL,
    "nextCursor": {"type": ["string", "null"]},
}
MAX_ERRORS = 5  # errors in one response
# Up to how many values the validator lists all errors, which takes about 10 us each, all at once;
# of a larger value it lists the first error.
_MAX_LISTED_VALUES = 2000
MAX_TEXT = 300  # characters of one error; long values are not echoed completely


def closed(properties: Schema, required: list[str] | None = None) -> Schema:
    """Return the schema of an object with exactly these fields; by default all are required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }


def page_schema(name: str, item: Schema) -> Schema:
    """Return the schema of one page of a list, with the items in the field `name`."""
    return closed({name: {"type": "array", "items": item}, **_PAGE_OUTPUT})


def page_of(name: str, items: Sequence[Any], *, total: int, offset: int) -> dict[str, Any]:
    """Return one page of a list of `total` items as `page_schema` describes it."""
    end = offset + len(items)
    more = bool(items) and end < total
    return {
        name: items,
        "total": total,
        "hasMore": more,
        "nextCursor": str(end) if more else None,
    }


def compile_schema(schema: dict[str, Any], *, mask: str | None = None) -> Draft202012Validator:
    """Return a validator with a linear-time pattern engine that never resolves a remote reference.

    Args:
        mask: text that stands for the invalid values in error messages.

    Raises:
        ValueError: The schema is invalid, has a remote reference, or a pattern that the linear
            engine does not support.
    """
    return Draft202012Validator(schema, pattern_options=RegexOptions(), offline=True, mask=mask)


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return a model's input schema by its aliases, without titles, which only cost tokens."""
    schema: dict[str, Any] = without_titles(model.model_json_schema(by_alias=True))
    return schema


def without_titles(node: Any) -> Any:
    """Return a schema without the titles that pydantic adds to each of its parts."""
    if isinstance(node, dict):
        # Inside "properties", "title" is a field of that name, not pydantic's title.
        return {
            key: {name: without_titles(value) for name, value in item.items()}
            if key in ("properties", "$defs") and isinstance(item, dict)
            else without_titles(item)
            for key, item in node.items()
            if not (key == "title" and isinstance(item, str))
        }
    return [without_titles(item) for item in node] if isinstance(node, list) else node


def has_secret_fields(schema: Mapping[str, Any]) -> bool:
    """Return whether any field of the schema is marked `writeOnly`: a secret input."""
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
    """Return the paths of the fields in a value that its schema marks `writeOnly`."""
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
    if validator.is_valid(value):
        return
    found = islice(_precise(first_errors(validator, value)), MAX_ERRORS)
    errors = [_error_as_dict(error, where) for error in found]
    if errors:
        first = errors[0]
        path = first["path"] or "the arguments"
        raise InvalidInput(f"{path}: {first['message']}", details={"errors": errors})


def first_errors(validator: Draft202012Validator, value: Any) -> list[ValidationError]:
    """Return the errors of a value; of a large one only the first."""
    if not _has_more_values(value, _MAX_LISTED_VALUES):
        return list(validator.iter_errors(value))
    try:
        validator.validate(value)
    except ValidationError as first:
        return [first]
    return []


def _has_more_values(value: Any, limit: int) -> bool:
    """Return whether a value has more than `limit` values in it."""
    todo = [value]
    for _ in range(limit):
        if not todo:
            return False
        part = todo.pop()
        if isinstance(part, Mapping):
            todo.extend(islice(part.values(), limit))
        elif isinstance(part, list):
            todo.extend(islice(part, limit))
    return bool(todo)


def coerce_integers(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a valid value with whole floats as int where the schema has an integer: JSON Schema
    accepts 5.0 as an integer, but Python code that counts and slices does not.
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


def _precise(errors: Iterable[ValidationError]) -> Iterator[ValidationError]:
    """Yield the errors; in place of that of an optional value, the errors of what it has to be."""
    for error in errors:
        inner = _of_optional(error)
        yield from [error] if inner is None else _precise(inner)


def _of_optional(error: ValidationError) -> Sequence[ValidationError] | None:
    """Return the errors of a value that may be null and is not, if it has one alternative."""
    kind = error.kind
    if not isinstance(kind, ValidationErrorKind.AnyOf | ValidationErrorKind.OneOfNotValid):
        return None
    others = [branch for branch in kind.context if not _wants_null(branch, error)]
    return others[0] if len(others) == 1 and len(kind.context) > 1 else None


def _wants_null(branch: Sequence[ValidationError], error: ValidationError) -> bool:
    """Return whether an alternative fails because the value is not null."""
    kind = branch[0].kind if len(branch) == 1 else None
    is_null = isinstance(kind, ValidationErrorKind.Type) and kind.types == ["null"]
    return is_null and list(branch[0].instance_path) == list(error.instance_path)


def _error_as_dict(error: ValidationError, where: str) -> dict[str, str]:
    path = ".".join(filter(None, [where, *map(str, error.instance_path)]))
    message = error.message
    if isinstance(error.kind, ValidationErrorKind.Enum):  # its message names only two options
        allowed = ", ".join(json.dumps(option, ensure_ascii=False) for option in error.kind.options)
        message = f"{message.partition(' is not one of ')[0]} is not one of {allowed}"
    if len(message) > MAX_TEXT:
        message = message[:MAX_TEXT] + "…"
    return {"path": path, "message": message}
