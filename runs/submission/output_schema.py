"""What a caller may give as options.outputSchema: a schema that is small, self-contained and safe
to apply.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from decisions.errors import InvalidInput
from decisions.validation.json_schema import compile_schema

MAX_BYTES = 64 * 1024
MAX_PATTERNS = 50
# A repetition of nothing but a repetition, as in (a+)+: our engine takes it, but the engines of
# those who read the schema after us (models' servers, clients) need exponential time for it.
_TOWER = re.compile(r"\((?:\?:)?(?:\\.|\[[^\]]*\]|[^\\()\[\]])[+*]\)[+*{]")


def check_output_schema(schema: dict[str, Any]) -> None:
    """Refuse an output schema that cannot be applied to an answer.

    Raises:
        InvalidInput: Over 64 KiB, not a JSON Schema, with a reference that leads elsewhere or
            only to itself, with a pattern that the linear-time engine does not take, or with too
            many: each costs up to 20 ms to compile.
    """
    try:
        size = len(orjson.dumps(schema))
    except TypeError as error:
        raise InvalidInput(f"options.outputSchema: {error}.") from None
    if size > MAX_BYTES:
        raise InvalidInput(f"options.outputSchema: over {MAX_BYTES} bytes.")
    patterns = _check_inside(schema, schema)
    if patterns > MAX_PATTERNS:
        raise InvalidInput(f"options.outputSchema: over {MAX_PATTERNS} patterns.")
    try:
        compile_schema(schema)
    except ValueError as error:
        raise InvalidInput(f"options.outputSchema: {str(error)[:200]}") from None


def _check_inside(node: Any, root: dict[str, Any]) -> int:
    """Refuse what is wrong anywhere inside; return how many patterns there are."""
    if isinstance(node, list):
        return sum(_check_inside(child, root) for child in node)
    if not isinstance(node, dict):
        return 0
    if isinstance(node.get("$ref"), str):
        _follow(node["$ref"], root)
    patterns = _patterns(node)
    if any(_TOWER.search(pattern) for pattern in patterns):
        raise InvalidInput("options.outputSchema: a pattern repeats a mere repetition.")
    return len(patterns) + sum(_check_inside(child, root) for child in node.values())


def _patterns(node: dict[str, Any]) -> list[str]:
    by_name = node.get("patternProperties")
    names = list(by_name) if isinstance(by_name, dict) else []
    return [node["pattern"], *names] if isinstance(node.get("pattern"), str) else names


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
