"""How a part of a JSON Schema is entered in a form: text, lines, a number, a group, JSON, …"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LONG_TEXT = 20_000  # a text that may have this many characters gets several lines
_MAX_DEPTH = 6  # deeper parts are entered as JSON
_BY_TYPE = {"integer": "number", "number": "number", "boolean": "boolean"}


@dataclass(frozen=True, slots=True)
class Shape:
    """A part of a schema.

    Attributes:
        kind: `text`, `secret`, `number`, `boolean`, `choice`, `lines` (a text or choice each),
            `group` (named fields), `rows` (groups), or `json` for everything else.
        schema: the part, with its reference resolved and without the alternative null.
        fields: of a group, by name.
        item: of lines and rows.
    """

    kind: str
    schema: Mapping[str, Any]
    fields: Mapping[str, Shape] = field(default_factory=dict)
    item: Shape | None = None

    @property
    def required(self) -> Sequence[str]:
        """The names of a group's fields that have to be given."""
        return [str(name) for name in self.schema.get("required", ())]

    @property
    def is_long(self) -> bool:
        """Whether a text gets several lines."""
        return int(self.schema.get("maxLength", 0)) >= LONG_TEXT


def shape_of(schema: Mapping[str, Any]) -> Shape:
    """Return the shape of a template's inputs."""
    return _shape(schema, schema.get("$defs", {}), 0)


def _shape(schema: Mapping[str, Any], defs: Mapping[str, Any], depth: int) -> Shape:
    part = _resolved(schema, defs)
    type_ = part.get("type")
    if depth > _MAX_DEPTH:
        return Shape("json", part)
    if "enum" in part:
        return Shape("choice", part)
    if type_ == "string":
        return Shape("secret" if part.get("writeOnly") else "text", part)
    if type_ == "object" and part.get("properties"):
        properties = part["properties"].items()
        return Shape(
            "group", part, {name: _shape(one, defs, depth + 1) for name, one in properties}
        )
    if type_ == "array" and isinstance(part.get("items"), Mapping):
        return _list_shape(part, _shape(part["items"], defs, depth + 1))
    return Shape(_BY_TYPE.get(str(type_), "json"), part)


def _list_shape(part: Mapping[str, Any], item: Shape) -> Shape:
    if item.kind in ("text", "choice"):
        return Shape("lines", part, item=item)
    return Shape("rows", part, item=item) if item.kind == "group" else Shape("json", part)


def _resolved(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a part without `$ref` and without the alternative null; its own keys win."""
    if "$ref" in schema:
        schema = {**defs[str(schema["$ref"]).rpartition("/")[2]], **schema}
    choices = [
        one
        for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ()))
        if one.get("type") != "null"
    ]
    if len(choices) == 1:
        own = {name: value for name, value in schema.items() if name not in ("anyOf", "oneOf")}
        return {**_resolved(choices[0], defs), **own}
    return schema
