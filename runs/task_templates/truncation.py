"""Shorten values to a size in bytes, so that they stay valid against their JSON Schema.

Long texts are cut first, between characters, then long lists, then properties that are not
required. Values under enum, const, pattern or format stay whole; minLength, minItems and required
are kept. The whole value is stored as an artifact by the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

RESULT_BYTES = 64 * 1024  # of a result in the run object; a larger one is shortened
_PINNED = frozenset({"enum", "const", "pattern", "format"})
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}


@dataclass(frozen=True, slots=True)
class _Limits:
    """What is left of a text (characters), a list (items) and an object (properties that its schema
    does not name); and whether optional properties stay.
    """

    text: int
    items: int
    names: int
    optional: bool = True


_LEVELS = (
    _Limits(16_000, 1000, 1000),
    _Limits(4000, 1000, 1000),
    _Limits(2000, 1000, 1000),
    _Limits(500, 1000, 1000),
    _Limits(200, 200, 200),
    _Limits(100, 50, 50),
    _Limits(60, 20, 20),
    _Limits(40, 5, 10),
    _Limits(20, 1, 5),
    _Limits(20, 0, 0),
    _Limits(0, 0, 0, optional=False),
)


def shorten(
    value: Mapping[str, Any], budget: int, schema: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the value shortened to at most `budget` bytes of JSON.

    A valid value stays valid against the schema. If even the smallest valid value is too large, {}
    is returned.
    """
    root = dict(schema or {})
    short: Any = dict(value)
    for limits in _LEVELS:
        if len(orjson.dumps(short)) <= budget:
            return dict(short)
        short = _Cutter(root, limits).cut(short, root)
    return dict(short) if len(orjson.dumps(short)) <= budget else {}


def shorten_result(
    value: Mapping[str, Any], budget: int, artifact_id: str, schema: Mapping[str, Any] | None = None
) -> Mapping[str, Any]:
    """Return a run's result; if it is over the budget, shortened and marked with `truncated` and
    the `artifactId` of the whole.
    """
    if len(orjson.dumps(value)) <= budget:
        return value
    marks = {"truncated": True, "artifactId": artifact_id}
    return shorten(value, budget - len(orjson.dumps(marks)), schema) | marks


def answer_schema(result_schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result schema with the marks of a shortened result added."""
    marks = {
        "truncated": {"type": "boolean", "description": "Shortened: artifactId has the whole."},
        "artifactId": {"type": "string"},
    }
    named = result_schema.get("properties", {})
    return {**result_schema, "properties": {**named, **marks}} if named else dict(result_schema)


@dataclass(frozen=True, slots=True)
class _Cutter:
    root: Mapping[str, Any]
    limits: _Limits

    def cut(self, value: Any, schema: Any) -> Any:
        """Return the value with its texts, lists and objects cut to the limits."""
        node = self._node(value, schema)
        if isinstance(value, str):
            return self._text(value, node)
        if isinstance(value, Mapping):
            return self._object(value, node)
        if isinstance(value, list | tuple):
            kept = max(self.limits.items, int(node.get("minItems", 0)))
            if _PINNED & node.keys() or "contains" in node:
                return value
            return [self.cut(item, node.get("items", {})) for item in value[:kept]]
        return value

    def _text(self, value: str, node: Mapping[str, Any]) -> str:
        kept = max(self.limits.text, int(node.get("minLength", 0)))
        if len(value) <= kept or _PINNED & node.keys():
            return value
        end = "…" if kept else ""  # within `kept`: the text must not become longer than allowed
        return value[: kept - len(end)] + end

    def _object(self, value: Mapping[str, Any], node: Mapping[str, Any]) -> Any:
        if _PINNED & node.keys() or "minProperties" in node or "patternProperties" in node:
            return value
        known = node.get("properties", {})
        required = set(node.get("required", ()))
        others = [name for name in value if name not in known and name not in required]
        extra = set(others[: self.limits.names])
        fallback = node.get("additionalProperties")
        fallback = fallback if isinstance(fallback, Mapping) else {}
        return {
            name: self.cut(item, known.get(name, fallback))
            for name, item in value.items()
            if name in required
            or (name in known and self.limits.optional)
            or (name in extra and len(name) <= max(self.limits.text, 40))
        }

    def _node(self, value: Any, schema: Any) -> Mapping[str, Any]:
        """Return the schema that applies to the value: references resolved, and of anyOf, oneOf or
        allOf the first branch of the value's type.
        """
        steps = 0
        while isinstance(schema, Mapping) and steps < 20:  # references may form a cycle
            steps += 1
            if isinstance(schema.get("$ref"), str):
                schema = self._follow(schema["$ref"])
                continue
            branches = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
            if not branches:
                return schema
            schema = next((branch for branch in branches if self._has_type(value, branch)), {})
        return {}

    def _has_type(self, value: Any, schema: Any) -> bool:
        type_ = self._node(value, schema).get("type", [])
        names = [type_] if isinstance(type_, str) else type_
        return not names or any(isinstance(value, _TYPES.get(name, ())) for name in names)

    def _follow(self, reference: str) -> Any:
        node: Any = self.root
        for part in reference.lstrip("#").strip("/").split("/"):
            if part:
                node = node.get(part, {}) if isinstance(node, Mapping) else {}
        return node
