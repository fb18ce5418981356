"""Digests of JSON values, to compare two calls."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson


def json_digest(value: Any) -> bytes:
    """Return the SHA-256 of a value's JSON with sorted keys; stored digests depend on it."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).digest()
