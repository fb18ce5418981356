"""Conversion of external values to JSON that the databases can store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

MAX_DEPTH = 64
_OPTIONS = orjson.OPT_NON_STR_KEYS


def storable(value: Any) -> Any:
    """Return the value as JSON that SQLite, PostgreSQL and every JSON parser accept.

    NUL and lone surrogates are replaced, NaN and infinities become null, integers beyond 64 bits
    become floats, and nesting beyond MAX_DEPTH is cut. A value that needs none of this costs one
    round trip through orjson.
    """
    try:
        raw = orjson.dumps(value, option=_OPTIONS)
    except TypeError:  # a lone surrogate, a huge integer, too deep, or not JSON
        raw = b""
    if not raw or b"\\u0000" in raw:
        raw = orjson.dumps(_cleaned(value, 0), option=_OPTIONS)
    return orjson.loads(raw)


def storable_text(text: str) -> str:
    """Return the text with NUL and lone surrogates replaced."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _cleaned(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        return "…"
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, Mapping):
        return {storable_text(str(key)): _cleaned(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item, depth + 1) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return _as_float(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _as_float(value: int) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None
