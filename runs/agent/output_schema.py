"""Validate options.outputSchema: it must be small, self-contained and quick to apply."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from decisions.foundation.errors import InvalidInput
from decisions.foundation.validation.foreign_schema import ForeignSchema

MAX_BYTES = 64 * 1024
# A nested repetition as in (a+)+. Our engine handles it in linear time, but the backtracking
# engines of model providers and clients, which get the schema too, need exponential time.
_NESTED_REPETITION = re.compile(r"\((?:\?:)?(?:\\.|\[[^\]]*\]|[^\\()\[\]])[+*]\)[+*{]")


def check_output_schema(schema: Mapping[str, Any]) -> ForeignSchema:
    """Return the measured schema; refuse one that cannot be applied to an answer.

    Raises:
        InvalidInput: It is over 64 KiB or no JSON Schema; a reference leads out of it; it takes too
            long to apply; it has a pattern that RE2 does not accept.
    """
    try:
        size = len(orjson.dumps(schema))
        if size > MAX_BYTES:
            raise ValueError(f"{size} bytes, {MAX_BYTES} are allowed")
        measured = ForeignSchema(schema)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"options.outputSchema: {str(error)[:200]}.") from None
    if any(_NESTED_REPETITION.search(pattern) for pattern in measured.patterns):
        raise InvalidInput(
            "options.outputSchema: a pattern repeats a repetition, as in (a+)+; simplify it."
        )
    return measured
