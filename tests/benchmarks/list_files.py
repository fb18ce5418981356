"""Measure a list of 20 000 files, against a bare walk with os.scandir that sorts the paths."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from runners.workspace.files.sandbox import Sandbox
from runners.workspace.workspace import WorkspacePolicy
from tests.benchmarks.big_tree import big_tree
from tests.benchmarks.rounds import alternate, ratio, report, spread


def bare(root: str) -> list[str]:
    """Return the paths of all files, sorted."""

    def walk() -> Iterator[str]:
        waiting = [root]
        while waiting:
            with os.scandir(waiting.pop()) as found:
                for one in found:
                    if not one.is_dir(follow_symlinks=False):
                        yield one.path
                    elif one.name not in {".git", "node_modules"}:
                        waiting.append(one.path)

    return sorted(path[len(root) + 1 :] for path in walk())


def ours(root: Path, glob: str) -> list[str]:
    """List with the tool's code."""
    with Sandbox(root, WorkspacePolicy().forbidden) as box:
        found = box.find(".", globs=[glob])
    return sorted(found.files + found.folders)


def _ms(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def main() -> None:
    """Measure and report."""
    with big_tree() as root:
        figures = alternate(
            {
                "scandir": lambda: _ms(lambda: bare(str(root))),
                "everything": lambda: _ms(lambda: ours(root, "**")),
                "by_name": lambda: _ms(lambda: ours(root, "**/*.txt")),
                "one_folder": lambda: _ms(lambda: ours(root, "d1/**/*.txt")),
            },
            9,
        )
    report(
        "list_files",
        ms={name: spread(each) for name, each in figures.items()},
        everything_to_scandir=ratio(figures["everything"], figures["scandir"]),
        by_name_to_scandir=ratio(figures["by_name"], figures["scandir"]),
        one_folder_to_scandir=ratio(figures["one_folder"], figures["scandir"]),
        goals={"everything_to_scandir": "<= 1.5"},
    )


if __name__ == "__main__":
    main()
