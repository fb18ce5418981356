"""JSON Schemas as the doors enforce them: closed, linear-time patterns, no fetching, errors a
caller can act on.
"""

from __future__ import annotations

from typing import Any

from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError
from pydantic import BaseModel

from decisions.errors import InvalidInput

MAX_TOLD = 5  # errors named in one answer
MAX_TEXT = 300  # characters of one error; values are not echoed whole


def compile_schema(schema: dict[str, Any]) -> Draft202012Validator:
    """Return a validator with a linear-time pattern engine that never resolves a remote reference.

    Raises:
        ValueError: The schema itself is wrong, refers elsewhere, or has a pattern outside the
            linear engine.
    """
    return Draft202012Validator(schema, pattern_options=RegexOptions(), offline=True)


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return a model's input schema by its JSON names, without pydantic's titles, which only cost
    tokens.
    """
    schema: dict[str, Any] = _plain(model.model_json_schema(by_alias=True))
    return schema


def _plain(node: Any) -> Any:
    if isinstance(node, dict):
        # A "title" beside a "type" is pydantic's; inside "properties" it is a field of that name.
        return {
            key: {name: _plain(value) for name, value in item.items()}
            if key in ("properties", "$defs")
            else _plain(item)
            for key, item in node.items()
            if not (key == "title" and isinstance(item, str))
        }
    return [_plain(item) for item in node] if isinstance(node, list) else node


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


def _told(error: ValidationError, where: str) -> dict[str, str]:
    path = ".".join(filter(None, [where, *map(str, error.instance_path)]))
    message = error.message
    if len(message) > MAX_TEXT:
        message = message[:MAX_TEXT] + "…"
    return {"path": path, "message": message}
