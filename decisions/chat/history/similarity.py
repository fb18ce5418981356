"""How alike two messages are: cosine of their hashed character n-grams, by no model and no service.

`similarity` is the one measure; an embedding model can take its place. A signature is its shadow,
64 bytes that rows keep: the share of bits in which two differ tells the angle between the vectors
(random hyperplanes), so that ten thousand are sifted in some milliseconds and only the few that may
matter are compared in full.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain, pairwise

MAX_TEXT = 2000  # characters that are compared: half from either end of a longer message
_ROUGH_TEXT = 500
_BITS = 512
_SIZES = (2, 3)


def similarity(one: str, other: str) -> float:
    """Return how alike two messages are, 0..1."""
    (first, one_length), (second, other_length) = _vector(one), _vector(other)
    if len(second) < len(first):
        first, second = second, first
    product = sum(weight * second[gram] for gram, weight in first.items() if gram in second)
    return min(1.0, round(product / (one_length * other_length), 6)) if product else 0.0


def rough_similarity(one: str, other: str) -> float:
    """Return about the same, 0..1, of the first 500 characters and many times as quickly: to choose
    what is worth a close look.
    """
    first, second = _pairs(one[:_ROUGH_TEXT]), _pairs(other[:_ROUGH_TEXT])
    return len(first & second) / math.sqrt(len(first) * len(second))


@lru_cache(maxsize=1024)
def _pairs(text: str) -> frozenset[str]:
    plain = _plain(text)
    return frozenset(map("".join, pairwise(plain)))


def signature(text: str) -> bytes:
    """Return the 64 bytes by which a message is found again."""
    vector, _ = _vector(text)
    lanes, total = 0, 0
    for gram, weight in vector.items():
        lanes += _plane(gram) * weight
        total += weight
    counts = memoryview(lanes.to_bytes(2 * _BITS, "little")).cast("H")
    number = sum(1 << place for place, count in enumerate(counts) if 2 * count > total)
    return number.to_bytes(_BITS // 8, "little")


def estimate(bits_apart: int) -> float:
    """Return the similarity that two signatures suggest, give or take 0.03."""
    return max(0.0, math.cos(math.pi * bits_apart / _BITS))


def near_ones(
    wanted: bytes, ids: Sequence[int], signatures: Sequence[int], *, at_least: float
) -> list[tuple[int, int]]:
    """Return (bits apart, id) of the signatures, as integers, whose similarity may be `at_least` or
    more.
    """
    target = int.from_bytes(wanted, "little")
    limit = int(_BITS * math.acos(at_least) / math.pi)
    return [
        (bits, number)
        for one, number in zip(signatures, ids, strict=True)
        if (bits := (one ^ target).bit_count()) <= limit
    ]


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(char if char.isalnum() else " " for char in folded).split()
    plain = f" {' '.join(words)} "
    half = MAX_TEXT // 2
    return plain if len(plain) <= MAX_TEXT else plain[:half] + plain[-half:]


@lru_cache(maxsize=256)
def _vector(text: str) -> tuple[Counter[str], float]:
    """Return how often a text has each n-gram, and the length of that vector."""
    plain = _plain(text)
    vector = Counter(
        chain.from_iterable(
            (plain[at : at + size] for at in range(len(plain) - size + 1)) for size in _SIZES
        )
    )
    return vector, math.sqrt(sum(weight * weight for weight in vector.values()))


@cache
def _spread(byte: int) -> bytes:
    return b"".join((byte >> place & 1).to_bytes(2, "little") for place in range(8))


@lru_cache(maxsize=4096)
def _plane(gram: str) -> int:
    """Return the n-gram's sides of 512 planes, a lane of 16 bits each."""
    sides = hashlib.blake2b(gram.encode(), digest_size=_BITS // 8).digest()
    return int.from_bytes(b"".join(map(_spread, sides)), "little")
