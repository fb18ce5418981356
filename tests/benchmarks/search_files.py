"""Measure a search of 20 000 files, against bare ripgrep whose output is parsed into the same
shape, and Python's `re` line by line; with ripgrep and without, with few hits and many, complete
and capped.

The cap matters only for the common pattern: the others have hardly more hits than it allows.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from runners.workspace.files.sandbox import Sandbox
from runners.workspace.search import file_search, ripgrep
from runners.workspace.search.patterns import line_pattern
from runners.workspace.workspace import WorkspacePolicy
from tests.benchmarks.large_folder import big_tree
from tests.benchmarks.rounds import alternate, ratio, report, spread

ROUNDS, CAP = 3, 2000
UNCAPPED = 1_000_000  # more than there are, because bare ripgrep has no cap either
LITERAL, COMMON, CHINESE = (
    r"needle_\d+ = fooBar",
    r"(callScene|jumpScene) \w+ choose$",
    "海风.{1,4}呢",
)
RG = [
    "rg",
    "-n",
    "--null",
    "--no-heading",
    "--color=never",
    "--no-config",
    "--no-ignore",
    "--hidden",
]


def seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def ours(root: Path, regex: str, limit: int, *, with_ripgrep: bool = True) -> None:
    """Search with the tool's code."""
    found = shutil.which("rg") if with_ripgrep else None
    ripgrep.find_ripgrep = lambda: found  # type: ignore[assignment]
    policy = WorkspacePolicy()
    search = file_search.SearchQuery(
        ".",
        line_pattern(regex),
        None,
        limit,
        policy.max_read_bytes,
        time.monotonic() + 60,
    )
    with Sandbox(root, policy.forbidden) as sandbox:
        file_search.search_below(sandbox, search)


def bare_ripgrep(root: Path, regex: str) -> list[tuple[str, int, str]]:
    """Run ripgrep and parse its output."""
    found = []
    output = subprocess.run([*RG, "-e", regex, "."], cwd=root, capture_output=True, check=False)
    for line in output.stdout.split(b"\n"):
        if line:
            path, _, rest = line.partition(b"\0")
            number, _, text = rest.partition(b":")
            found.append((path.decode(), int(number), text.decode("utf-8", "replace")))
    return found


def python_re(root: Path, regex: str) -> list[tuple[str, int, str]]:
    """Search line by line."""
    found = []
    compiled = re.compile(regex)
    for folder, _, names in os.walk(root):
        for name in names:
            with Path(folder, name).open(encoding="utf-8", errors="replace") as lines:
                for number, line in enumerate(lines, 1):
                    if compiled.search(line):
                        found.append((f"{folder}/{name}", number, line))
    return found


def main() -> None:
    """Measure and report."""
    results = {}
    with big_tree() as root:
        for name, regex in (("literal", LITERAL), ("chinese", CHINESE), ("common", COMMON)):
            variants = {
                "ours": partial(seconds, partial(ours, root, regex, UNCAPPED)),
                "capped": partial(seconds, partial(ours, root, regex, CAP)),
                "re2_alone": partial(
                    seconds, partial(ours, root, regex, UNCAPPED, with_ripgrep=False)
                ),
                "ripgrep": partial(seconds, partial(bare_ripgrep, root, regex)),
                "python_re": partial(seconds, partial(python_re, root, regex)),
            }
            measurements = alternate(variants, ROUNDS)
            results[name] = {
                "seconds": {variant: spread(times) for variant, times in measurements.items()},
                "speed_to_ripgrep": ratio(measurements["ripgrep"], measurements["ours"]),
                "speed_to_python_re": ratio(measurements["python_re"], measurements["ours"]),
                "re2_alone_to_ripgrep": ratio(measurements["ripgrep"], measurements["re2_alone"]),
                "capped_to_uncapped": ratio(measurements["capped"], measurements["ours"]),
            }
    goals = {
        "speed_to_ripgrep": ">= 0.8",
        "speed_to_python_re": ">= 3 (literal)",
        "re2_alone_to_ripgrep": ">= 0.4",
        "capped_to_uncapped": "<= 0.35 (common)",
    }
    report("search_files", patterns=results, goals=goals)


if __name__ == "__main__":
    main()
