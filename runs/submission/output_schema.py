"""Validate options.outputSchema: it must be small, self-contained and safe to apply."""

from __future__ import annotations

import re
from typing import Any

import orjson

from decisions.errors import InvalidInput
from decisions.validation.json_schema import compile_schema

MAX_BYTES = 64 * 1024
MAX_PATTERNS = 50
# A nested repetition as in (a+)+. Our engine handles it in linear time, but the backtracking
# engines of model providers and clients, which get the schema too, need exponential time.
_NESTED_REPETITION = re.compile(r"\((?:\?:)?(?:\\.|\[[^\]]*\]|[^\\()\[\]])[+*]\)[+*{]")


def check_output_schema(schema: dict[str, Any]) -> None:
    """Refuse an output schema that cannot be applied to an answer.

    Raises:
        InvalidInput: It is over 64 KiB or no JSON Schema; a reference leads out of it or only to
            itself; it has a pattern that RE2 does not accept, or over MAX_PATTERNS of them (each
            takes up to 20 ms to compile).
    """
    try:
        size = len(orjson.dumps(schema))
    except TypeError as error:
        raise InvalidInput(f"options.outputSchema: {error}.") from None
    if size > MAX_BYTES:
        raise InvalidInput(f"options.outputSchema: {size} bytes, {MAX_BYTES} are allowed.")
    patterns = _check_inside(schema, schema)
    if patterns > MAX_PATTERNS:
        raise InvalidInput(
            f"options.outputSchema: {patterns} patterns, {MAX_PATTERNS} are allowed."
        )
    try:
        compile_schema(schema)
    except ValueError as error:
        raise InvalidInput(f"options.outputSchema: {str(error)[:200]}") from None


def _check_inside(node: Any, root: dict[str, Any]) -> int:
    """Refuse bad references and patterns anywhere in the node; return the number of patterns."""
    if isinstance(node, list):
        return sum(_check_inside(child, root) for child in node)
    if not isinstance(node, dict):
        return 0
    if isinstance(node.get("$ref"), str):
        _follow(node["$ref"], root)
    patterns = _patterns(node)
    if any(_NESTED_REPETITION.search(pattern) for pattern in patterns):
        raise InvalidInput(
            "options.outputSchema: a pattern repeats a repetition, as in (a+)+; simplify it."
        )
    return len(patterns) + sum(_check_inside(child, root) for child in node.values())


def _patterns(node: dict[str, Any]) -> list[str]:
    by_name = node.get("patternProperties")
    names = list(by_name) if isinstance(by_name, dict) else []
    return [node["pattern"], *names] if isinstance(node.get("pattern"), str) else names


def _follow(reference: str, root: dict[str, Any]) -> None:
    """Follow a chain of references; refuse one that leads out of the schema or back to itself."""
    seen: set[str] = set()
    while True:
        if not reference.startswith("#"):
            raise InvalidInput(
                f"options.outputSchema: the reference {reference[:100]} leads out of the schema."
            )
        if reference in seen:
            raise InvalidInput(
                f"options.outputSchema: the reference {reference[:100]} leads only to itself."
            )
        seen.add(reference)
        node: Any = root
        for part in reference.lstrip("#").strip("/").split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if key and isinstance(node, dict):
                node = node.get(key)
        if not isinstance(node, dict) or not isinstance(node.get("$ref"), str):
            return
        reference = node["$ref"]
