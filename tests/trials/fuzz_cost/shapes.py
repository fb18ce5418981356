"""Inputs of any size, built from a parser's fragments: repeated, nested, mixed, broken at the
end."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

Shape = Callable[[int], str]


def draw_shape(draw: random.Random, fragments: Sequence[str]) -> tuple[str, Shape]:
    """Return a shape, described, that makes a text of about a number of characters."""
    kind = draw.choice(["repeat", "repeat", "alternate", "nest", "mix", "many", "end"])
    a, b, c = (draw.choice(fragments) for _ in range(3))
    if kind == "repeat":
        return f"{a!r} again and again, then {c!r}", lambda size: _times(a, size) + c
    if kind == "alternate":
        return f"{b!r}, {a + c!r} again and again", lambda size: b + _times(a + c, size)
    if kind == "nest":
        return (
            f"{a!r} … {b!r}, as deep as long",
            lambda size: _times(a, size // 2) + c + _times(b, size // 2),
        )
    if kind == "end":
        return f"{a!r}, {b!r} again and again, {c!r}", lambda size: a + _times(b, size) + c
    if kind == "many":
        return f"numbered lines of {a!r} and {b!r}", lambda size: "\n".join(
            f"{a}{number}{b}" for number in range(size // (len(a + b) + 6) + 1)
        )
    seed = draw.getrandbits(32)
    return f"a mix of all fragments (seed {seed})", lambda size: _mix(seed, fragments, size)


def _times(fragment: str, size: int) -> str:
    return fragment * max(1, size // max(1, len(fragment)))


def _mix(seed: int, fragments: Sequence[str], size: int) -> str:
    draw, parts, length = random.Random(seed), [], 0
    while length < size:
        parts.append(draw.choice(fragments))
        length += max(1, len(parts[-1]))
    return "".join(parts)
