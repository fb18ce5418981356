"""Create 20 000 files, about 180 MB, in 1000 folders: the tree for the benchmarks of the file
tools."""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

FILES = 20_000
WORDS = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "changeBg",
    "setVar",
    "jumpScene",
    "choose",
    "label",
    "dialogue",
    "speaker",
    "figure",
    "bgm",
    "vocal",
    "end",
    "intro",
    "next",
    "callScene",
    "function",
    "return",
    "class",
    "import",
]


@contextlib.contextmanager
def big_tree() -> Iterator[Path]:
    """Create the tree for the length of the block; it is the same each time."""
    with tempfile.TemporaryDirectory() as folder:
        root, rng = Path(folder), random.Random(3)
        block = [" ".join(rng.choices(WORDS, k=rng.randint(4, 16))) for _ in range(4000)]
        for number in range(FILES):
            subfolder = root / f"d{number % 40}/s{number // 40 % 25}"
            subfolder.mkdir(parents=True, exist_ok=True)
            at = rng.randint(0, 3700)
            lines = block[at : at + rng.randint(20, 240)]
            if number % 100 == 0:
                lines = [*lines, f"const needle_{number} = fooBar({number});"]
            if number % 7 == 0:
                lines = [*lines, "雪乃: 海风真舒服呢;"]
            (subfolder / f"f{number}.txt").write_text("\n".join(lines) + "\n")
        yield root
