"""JSON schemas that are small and expand to many subschemas."""

from __future__ import annotations

from typing import Any


def doubled_references(levels: int) -> dict[str, Any]:
    """Return a schema in which each of the levels refers twice to the next."""
    defs: dict[str, Any] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{levels}": {"type": "string"}}}
