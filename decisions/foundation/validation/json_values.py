"""How many values JSON has, before it is parsed. Tools and the readers of requests use it alike; it
imports nothing, so that tools may (pyproject.toml).
"""

from __future__ import annotations

import re

_CHUNK_BYTES = 64 * 1024  # what one native call reads, during which no other thread runs
_ESCAPED = re.compile(rb"\\.", re.DOTALL)


def has_too_many_values(raw: bytes, limit: int) -> bool:
    """Return whether JSON has more values than a limit, field names not counted. True is certain;
    the result can be False for JSON with up to twice as many.
    """
    if max(raw.count(b","), raw.count(b"[") + raw.count(b"{")) <= limit:
        return False
    commas = brackets = 0  # outside of strings
    is_in_string, cut = False, b""
    for begin in range(0, len(raw), _CHUNK_BYTES):
        chunk = _ESCAPED.sub(b"", cut + raw[begin : begin + _CHUNK_BYTES])
        cut = b"\\" if chunk.endswith(b"\\") else b""  # what it escapes is in the next chunk
        parts = chunk.split(b'"')
        outside = b" ".join(parts[is_in_string::2])
        commas += outside.count(b",")
        brackets += outside.count(b"[") + outside.count(b"{")
        if max(commas, brackets) > limit:
            return True
        is_in_string ^= len(parts) % 2 == 0
    return False
