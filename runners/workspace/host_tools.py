"""Schemas of the tools that the agent's host performs (S4 §3): one text in, an acknowledgement
out.
"""

from __future__ import annotations

from typing import Any

ACKNOWLEDGEMENT: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"ack": {"const": True}},
    "required": ["ack"],
}


def text_request(tool: str, name: str) -> dict[str, Any]:
    """Return the input schema of a tool with one required text."""
    return {
        "$id": f"{tool}.request",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "properties": {name: {"type": "string", "minLength": 1}},
        "required": [name],
    }
