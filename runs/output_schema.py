"""What a caller may give as options.outputSchema: a schema that is small, self-contained and safe
to apply.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from decisions.errors import InvalidInput
from decisions.schemas import compile_schema

MAX_BYTES = 64 * 1024
# A repetition of nothing but a repetition, as in (a+)+: our engine takes it, but the engines of
# those who read the schema after us (models' servers, clients) need exponential time for it.
_TOWER = re.compile(r"\((?:\?:)?(?:\\.|\[[^\]]*\]|[^\\()\[\]])[+*]\)[+*{]")


def check_output_schema(schema: dict[str, Any]) -> None:
    """Refuse an output schema that cannot be applied to an answer.

    Raises:
        InvalidInput: Over 64 KiB, not a JSON Schema, with a reference that leads elsewhere or
            only to itself, or
            with a pattern that the linear-time engine does not take.
    """
    if len(orjson.dumps(schema)) > MAX_BYTES:
        raise InvalidInput(f"options.outputSchema: over {MAX_BYTES} bytes.")
    _check_inside(schema, schema)
    try:
        compile_schema(schema)
    except ValueError as error:
        raise InvalidInput(f"options.outputSchema: {str(error)[:200]}") from None


def _check_inside(node: Any, root: dict[str, Any]) -> None:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            _follow(node["$ref"], root)
        if isinstance(node.get("pattern"), str) and _TOWER.search(node["pattern"]):
            raise InvalidInput("options.outputSchema: a pattern repeats a mere repetition.")
        for child in node.values():
            _check_inside(child, root)
    elif isinstance(node, list):
        for child in node:
            _check_inside(child, root)


def _follow(reference: str, root: dict[str, Any]) -> None:
    """Follow a chain of bare references: one that comes back to itself would never
    reach a schema.
    """
    seen: set[str] = set()
    while True:
        if not reference.startswith("#"):
            raise InvalidInput(
                "options.outputSchema: only references within the schema are followed."
            )
        if reference in seen:
            raise InvalidInput("options.outputSchema: a reference leads only to itself.")
        seen.add(reference)
        found: Any = root
        for part in reference.lstrip("#").strip("/").split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if key and isinstance(found, dict):
                found = found.get(key)
        if not isinstance(found, dict) or not isinstance(found.get("$ref"), str):
            return
        reference = found["$ref"]
