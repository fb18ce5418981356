"""Similarity of two messages: the cosine of their character n-gram counts, without a model.

`similarity` is exact; an embedding model could replace it. A signature is a locality-sensitive hash
(random hyperplanes) of 64 bytes that is stored with each event: the share of differing bits
estimates the angle between two vectors. Ten thousand signatures are scanned in a few milliseconds,
and only the nearest messages are compared exactly.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain, pairwise

MAX_TEXT = 2000  # characters that are compared: for longer messages, half from each end
_ROUGH_TEXT = 500
_BITS = 512
_SIZES = (2, 3)


def similarity(one: str, other: str) -> float:
    """Return the similarity of two messages, 0..1."""
    (first, one_length), (second, other_length) = _vector(one), _vector(other)
    if len(second) < len(first):
        first, second = second, first
    product = sum(weight * second[gram] for gram, weight in first.items() if gram in second)
    return min(1.0, round(product / (one_length * other_length), 6)) if product else 0.0


def rough_similarity(one: str, other: str) -> float:
    """Return an approximate similarity of the first 500 characters, 0..1; many times faster, to
    preselect candidates.
    """
    first, second = _pairs(one[:_ROUGH_TEXT]), _pairs(other[:_ROUGH_TEXT])
    return len(first & second) / math.sqrt(len(first) * len(second))


@lru_cache(maxsize=1024)
def _pairs(text: str) -> frozenset[str]:
    plain = _plain(text)
    return frozenset(map("".join, pairwise(plain)))


def signature(text: str) -> bytes:
    """Return the signature of a message, 64 bytes."""
    vector, _ = _vector(text)
    lanes, total = 0, 0
    for gram, weight in vector.items():
        lanes += _plane(gram) * weight
        total += weight
    counts = memoryview(lanes.to_bytes(2 * _BITS, "little")).cast("H")
    number = sum(1 << index for index, count in enumerate(counts) if 2 * count > total)
    return number.to_bytes(_BITS // 8, "little")


def near_ones(
    wanted: bytes, ids: Sequence[int], signatures: Sequence[int], *, at_least: float
) -> list[tuple[int, int]]:
    """Return (differing bits, id) of the signatures whose estimated similarity is `at_least`."""
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
    """Return the n-gram counts of a text, and the length of that vector."""
    plain = _plain(text)
    vector = Counter(
        chain.from_iterable(
            (plain[at : at + size] for at in range(len(plain) - size + 1)) for size in _SIZES
        )
    )
    return vector, math.sqrt(sum(weight * weight for weight in vector.values()))


@cache
def _spread(byte: int) -> bytes:
    return b"".join((byte >> bit & 1).to_bytes(2, "little") for bit in range(8))


@lru_cache(maxsize=4096)
def _plane(gram: str) -> int:
    """Return on which side of each of 512 hyperplanes an n-gram is, in lanes of 16 bits."""
    sides = hashlib.blake2b(gram.encode(), digest_size=_BITS // 8).digest()
    return int.from_bytes(b"".join(map(_spread, sides)), "little")
