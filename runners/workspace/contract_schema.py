"""JSON Schemas of the contract S4, as the tools publish them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def contract_schema(
    id_: str,
    properties: Mapping[str, Any],
    required: Sequence[str] = (),
    *,
    closed: bool = True,
    **more: Any,
) -> dict[str, Any]:
    """Return the schema of a tool's input or output.

    Args:
        id_: such as "read_file.request".
        closed: no other properties are allowed.
        more: further keywords (`oneOf`, `allOf`).
    """
    return {
        "$id": id_,
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        **({"additionalProperties": False} if closed else {}),
        "properties": properties,
        **({"required": required} if required else {}),
        **more,
    }
