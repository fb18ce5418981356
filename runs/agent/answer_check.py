"""Validate the agent's answer against the run's output schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from jsonschema_rs import ValidationError, ValidationErrorKind

from decisions.foundation.validation.foreign_schema import ForeignSchema
from decisions.foundation.validation.schema_nodes import SchemaTooCostly

MAX_LISTED = 20  # errors in a verification
REASON_MAX, VALUE_MAX = 200, 60  # characters of an error's reason, and of the value
# Keywords whose values are data, not schemas; and keywords whose values map names to schemas.
_DATA = frozenset({"const", "default", "enum", "examples"})
_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})


def verify_output(output: Any, schema: ForeignSchema | None) -> dict[str, Any]:
    """Return {pass, score, missingFields, typeMismatches, reason}; without a schema nothing is
    verified: `pass` and `score` are None.

    The score is the share of the schema's top-level properties that are present and valid, as far
    as the listed errors tell.
    """
    if schema is None:
        return {
            **_verdict([], [], 0.0, "not verified: no output schema was given"),
            "pass": None,
            "score": None,
        }
    try:
        errors = schema.errors(output, at_most=MAX_LISTED + 1)
    except SchemaTooCostly as costly:
        return _verdict([], [], 0.0, f"not verified: {costly}")
    if errors is None:
        return _verdict([], [], 0.0, "it does not fit the schema, and is too large to say where")
    missing, mismatched, broken = [], [], set()
    for error in errors[:MAX_LISTED]:
        path = [str(part) for part in error.instance_path]
        if isinstance(error.kind, ValidationErrorKind.Required):
            path = [*path, str(error.kind.property)]
            missing.append(".".join(path))
        else:
            mismatched.append(_mismatch(".".join(path), error))
        broken.add(path[0] if path else "")
    fields = list(schema.schema.get("properties", ()))
    if "" in broken or not fields:
        score = 0.0 if errors else 1.0
    else:
        score = 1 - sum(name in broken for name in fields) / len(fields)
    count = f"over {MAX_LISTED}" if len(errors) > MAX_LISTED else str(len(errors))
    reason = f"{count} parts do not fit the schema" if errors else "it fits the schema"
    return _verdict(missing, mismatched, round(score, 3), reason)


def _mismatch(path: str, error: ValidationError) -> str:
    """Return place, keyword and reason, and only then the beginning of the value."""
    keyword = str(error.schema_path[-1]) if error.schema_path else "schema"
    value = orjson.dumps(error.instance).decode()
    if len(value) > VALUE_MAX:
        value = value[:VALUE_MAX] + "…"
    size = f", {len(error.instance)} items" if isinstance(error.instance, list) else ""
    return f"{path or 'the answer'}: {keyword}: {error.message[:REASON_MAX]} ({value}{size})"


def _verdict(
    missing: list[str], mismatched: list[str], score: float, reason: str
) -> dict[str, Any]:
    return {
        "pass": score == 1.0 and not missing and not mismatched,
        "score": score,
        "missingFields": missing,
        "typeMismatches": mismatched,
        "reason": reason,
    }


def completion_of(answer: str, output: Any, schema: ForeignSchema | None) -> dict[str, Any]:
    """Return {answer, output?, verification} for the model's answer.

    Where the run has a schema and the model gave no output, the answer is parsed as JSON.
    """
    if schema is None:
        return {"answer": answer, "verification": verify_output(None, None)}
    if output is None:
        output = _parse_json(answer)
    return {"answer": answer, "output": output, "verification": verify_output(output, schema)}


def is_refused(completion: Mapping[str, Any]) -> bool:
    """Return whether an answer does not fit the output schema; False without a schema."""
    return completion["verification"]["pass"] is False


def _parse_json(answer: str) -> Any:
    text = answer.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def rebase_refs(schema: Mapping[str, Any], pointer: str) -> dict[str, Any]:
    """Return the schema for embedding at `pointer` (`#/properties/x`) of another schema: its
    internal references then start there.
    """
    return {
        name: value
        for name, value in _rebase_node(schema, pointer).items()
        if name not in ("$id", "$schema")
    }


def _rebase_node(node: Any, pointer: str) -> Any:
    if isinstance(node, list):
        return [_rebase_node(child, pointer) for child in node]
    if not isinstance(node, Mapping):
        return node
    rebased: dict[str, Any] = {}
    for key, value in node.items():
        if key == "$ref" and (value == "#" or str(value).startswith("#/")):
            rebased[key] = pointer + value[1:]
        elif key in _NAMED and isinstance(value, Mapping):
            rebased[key] = {name: _rebase_node(child, pointer) for name, child in value.items()}
        else:
            rebased[key] = value if key in _DATA else _rebase_node(value, pointer)
    return rebased
