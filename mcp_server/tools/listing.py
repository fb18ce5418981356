"""The entries of tools/list: what a model needs to choose a tool and to call it.

Hosts pass the whole list to their model with every request, so it is short. It names every argument
and every field of a result with its type, the fields of a run once. What it leaves out, the server
still enforces: lengths, patterns and bounds of arguments, and the parts of a result below its own
fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types

from mcp_server.tools.registry import McpTool, Schema

# Keywords that a model does not need: the error of a call says what it violated.
_UNLISTED_KEYWORDS = frozenset(
    {"$id", "$schema", "minLength", "maxLength", "pattern", "propertyNames", "maxProperties"}
)
_NEVER_EXCEEDED = 2**31  # a larger maximum says nothing to a model
# What the protocol assumes of a tool that does not say.
_DEFAULT_HINTS = {
    "read_only_hint": False,
    "destructive_hint": True,
    "idempotent_hint": False,
    "open_world_hint": True,
}


def list_entry(tool: McpTool) -> types.Tool:
    """Return the entry of a tool whose arguments are described by this server."""
    return _entry(tool, listed_input(tool.input_schema))


def list_entry_of_runner(tool: McpTool) -> types.Tool:
    """Return the entry of a runner's tool: its input schema is the runner's, unchanged."""
    return _entry(tool, tool.input_schema)


def _entry(tool: McpTool, input_schema: Schema) -> types.Tool:
    fields: dict[str, Any] = {"title": tool.title} if tool.title else {}
    if tool.output_schema:
        is_named_elsewhere = bool(tool.output_as_of)
        fields["output_schema"] = (
            {"type": "object"} if is_named_elsewhere else listed_output(tool.output_schema)
        )
    if hints := _hints(tool):
        fields["annotations"] = types.ToolAnnotations(**hints)
    if tool.meta is not None:
        fields["_meta"] = dict(tool.meta)
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=input_schema,
        **fields,
    )


def _hints(tool: McpTool) -> dict[str, Any]:
    """Return the hints that differ from the protocol's defaults; for a tool that only reads, the
    protocol gives no meaning to the hints about its changes.
    """
    hints = {"read_only_hint": tool.read_only, "open_world_hint": tool.open_world}
    if not tool.read_only:
        hints |= {"destructive_hint": tool.destructive, "idempotent_hint": tool.idempotent}
    return {name: value for name, value in hints.items() if value != _DEFAULT_HINTS[name]}


def listed_input(schema: Schema) -> Schema:
    """Return an input schema with the names, types, choices and descriptions of all arguments."""
    listed: Schema = _listed_input(schema)
    if "additionalProperties" in schema:
        listed["additionalProperties"] = schema["additionalProperties"]
    return listed


def _listed_input(node: Any) -> Any:
    if isinstance(node, list):
        return [_listed_input(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        keyword: {name: _listed_input(one) for name, one in value.items()}
        if keyword in ("properties", "$defs")
        else _listed_input(value)
        for keyword, value in node.items()
        if not _is_unlisted(keyword, value)
    }


def _is_unlisted(keyword: str, value: Any) -> bool:
    if keyword == "maximum":
        return bool(value >= _NEVER_EXCEEDED)
    if keyword == "minimum":
        return value in (0, 1)
    is_empty = keyword == "required" and not value
    is_closed = keyword == "additionalProperties" and value is False
    return keyword in _UNLISTED_KEYWORDS or is_empty or is_closed


def listed_output(schema: Schema) -> Schema:
    """Return an output schema with the name and the type of each field of the result."""
    fields = schema.get("properties", {})
    return {"type": "object", "properties": {name: _type_of(one) for name, one in fields.items()}}


def _type_of(schema: Mapping[str, Any]) -> Schema:
    key = "const" if "type" not in schema and "const" in schema else "type"
    named: Schema = {key: schema[key]} if key in schema else {}
    if "anyOf" in schema:
        named["anyOf"] = [_type_of(one) for one in schema["anyOf"]]
    if "items" in schema:
        named["items"] = _type_of(schema["items"])
    return named
