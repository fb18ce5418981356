"""Ids: a prefix and 26 characters that sort by time of creation."""

from __future__ import annotations

import secrets

from decisions.foundation.infra.clock import now_ms

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u


def new_id(prefix: str) -> str:
    """Return `prefix` + 10 characters of Unix milliseconds + 16 random ones (80 bits).

    Ids of the same millisecond sort at random; ids of different machines sort by their clocks.
    """
    number = now_ms() << 80 | secrets.randbits(80)
    digits = [_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5)]
    return prefix + "".join(digits)
