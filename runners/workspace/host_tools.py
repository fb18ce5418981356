"""Schemas of the tools that the agent's host performs (S4 §3): one text in, an acknowledgement
out.
"""

from __future__ import annotations

from typing import Any

from runners.workspace.contract_schema import contract_schema

ACKNOWLEDGEMENT: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"ack": {"const": True}},
    "required": ["ack"],
}


def text_request(tool: str, name: str) -> dict[str, Any]:
    """Return the input schema of a tool with one required text."""
    return contract_schema(f"{tool}.request", {name: {"type": "string", "minLength": 1}}, [name])
