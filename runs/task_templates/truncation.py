"""Values cut to a size that a model can read, in the shape that their JSON Schema asks for.

Long texts are cut first, on whole characters, then long lists, then what the schema does not
require. What a schema pins down (enum, const, pattern, format, minLength, minItems, required) stays
as it is. Whatever was cut is whole in the artifact that the answer names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

RESULT_BYTES = 64 * 1024  # a larger result is shortened in the run (runs.md, "Run object")
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
    """How much is left of a text (characters), a list (items), an object (names that its schema
    does not know), and whether properties that are not required stay.
    """

    text: int
    items: int
    names: int
    optional: bool = True


_LADDER = (
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
    """Return the value as it is where it has at most `budget` bytes as JSON, else cut until it has.

    It stays valid against the schema that it was valid against; where that alone takes more than
    the budget, nothing is left of it.
    """
    root = dict(schema or {})
    short: Any = dict(value)
    for limits in _LADDER:
        if len(orjson.dumps(short)) <= budget:
            return dict(short)
        short = _Cutter(root, limits).cut(short, root)
    return dict(short) if len(orjson.dumps(short)) <= budget else {}


def shorten_result(
    value: Mapping[str, Any], budget: int, artifact_id: str, schema: Mapping[str, Any] | None = None
) -> Mapping[str, Any]:
    """Return a run's result, shortened to the budget where it is larger: then `truncated` is true
    and `artifactId` names the whole.
    """
    if len(orjson.dumps(value)) <= budget:
        return value
    mark = {"truncated": True, "artifactId": artifact_id}
    return shorten(value, budget - len(orjson.dumps(mark)), schema) | mark


def answer_schema(result_schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a result as answers have it: whole, or shortened and marked so."""
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
        """Return the value with what is too long in it cut."""
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
        # The sign of a cut must not make the text longer than it was, nor than it may be.
        end = "…" if kept else ""
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
        """Return the part of a schema that speaks of the value: references followed, the branch
        chosen that is of its type.
        """
        seen = 0
        while isinstance(schema, Mapping) and seen < 20:
            seen += 1
            if isinstance(schema.get("$ref"), str):
                schema = self._follow(schema["$ref"])
                continue
            branches = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
            if not branches:
                return schema
            schema = next((each for each in branches if self._suits(value, each)), {})
        return {}

    def _suits(self, value: Any, schema: Any) -> bool:
        node = self._node(value, schema)
        wanted = node.get("type", [])
        names = [wanted] if isinstance(wanted, str) else wanted
        return not names or any(isinstance(value, _TYPES.get(name, ())) for name in names)

    def _follow(self, reference: str) -> Any:
        found: Any = self.root
        for part in reference.lstrip("#").strip("/").split("/"):
            if part:
                found = found.get(part, {}) if isinstance(found, Mapping) else {}
        return found
