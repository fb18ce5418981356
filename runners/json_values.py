"""How many values JSON has, before it is parsed: the same as for the JSON of callers in
`decisions.foundation.validation.json_input`, which what executes tools does not import."""

from __future__ import annotations

import re

# An unterminated string matches to the end: else each quote in it would start another match.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)


def _least_values(raw: bytes) -> int:
    """Return a number of values that JSON has at least, if none of its strings has a bracket or a
    comma.
    """
    return max(raw.count(b","), raw.count(b"[") + raw.count(b"{"))


def has_too_many_values(raw: bytes, limit: int) -> bool:
    """Return whether JSON has more values than a limit, field names not counted. True is certain;
    the result can be False for JSON with up to twice as many.
    """
    if _least_values(raw) <= limit:
        return False
    strings = (raw.count(b'"') - raw.count(b'\\"')) // 2  # at least; of a value, or its name
    return strings > 2 * limit or _least_values(_STRING.sub(b"", raw)) > limit
