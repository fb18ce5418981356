"""JSON that is written: its digest, and its form as one line for every reader."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

# NEL and the two Unicode separators: some readers end a line at these and then wait for the rest
# forever. In JSON they occur only inside strings, where they can be escaped.
_SEPARATORS = {
    "\u0085".encode(): b"\\u0085",
    "\u2028".encode(): b"\\u2028",
    "\u2029".encode(): b"\\u2029",
}


def json_digest(value: Any) -> bytes:
    """Return the SHA-256 of a value's JSON with sorted keys; stored digests depend on it."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).digest()


def escape_line_separators(text: bytes) -> bytes:
    """Return equivalent UTF-8 JSON with NEL, U+2028 and U+2029 escaped."""
    for separator, escaped in _SEPARATORS.items():
        if separator in text:
            text = text.replace(separator, escaped)
    return text
