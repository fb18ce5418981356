"""Measure a list of 20 000 files, against a bare walk with os.scandir that sorts the paths."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from runners.workspace.files.sandbox import Sandbox
from runners.workspace.workspace import WorkspacePolicy
from tests.benchmarks.large_folder import big_tree
from tests.benchmarks.rounds import alternate, ratio, report, spread


def scan(root: str) -> list[str]:
    """Return the paths of all files, sorted."""

    def walk() -> Iterator[str]:
        pending = [root]
        while pending:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        yield entry.path
                    elif entry.name not in {".git", "node_modules"}:
                        pending.append(entry.path)

    return sorted(path[len(root) + 1 :] for path in walk())


def ours(root: Path, glob: str) -> list[str]:
    """List with the tool's code."""
    with Sandbox(root, WorkspacePolicy().forbidden) as sandbox:
        entries = sandbox.find(".", globs=[glob])
    return sorted(entries.files + entries.folders)


def _ms(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def main() -> None:
    """Measure and report."""
    with big_tree() as root:
        measurements = alternate(
            {
                "scandir": lambda: _ms(lambda: scan(str(root))),
                "everything": lambda: _ms(lambda: ours(root, "**")),
                "by_name": lambda: _ms(lambda: ours(root, "**/*.txt")),
                "one_folder": lambda: _ms(lambda: ours(root, "d1/**/*.txt")),
            },
            9,
        )
    report(
        "list_files",
        ms={name: spread(values) for name, values in measurements.items()},
        everything_to_scandir=ratio(measurements["everything"], measurements["scandir"]),
        by_name_to_scandir=ratio(measurements["by_name"], measurements["scandir"]),
        one_folder_to_scandir=ratio(measurements["one_folder"], measurements["scandir"]),
        goals={"everything_to_scandir": "<= 1.5"},
    )


if __name__ == "__main__":
    main()
