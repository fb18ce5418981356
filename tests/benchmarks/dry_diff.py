"""Measure a dry run's diff against two floors: `git diff --no-index` on the same texts, and
difflib.

20 000 lines with 2000 edits, of which 80 % and 30 % of the lines occur once; the same with 50
edits; and repetitive text, where difflib is slow (on 4000 lines, or it would not end). `ours` is
the diff alone, `dry_run` the whole preview: read, check policy, store the preview, diff.
"""

from __future__ import annotations

import difflib
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from runners.workspace.workspace import ProjectWorkspace, WorkspacePolicy
from runners.workspace.writing.line_diff import diff_lines
from runners.workspace.writing.write_text import preview_text
from tests.benchmarks.rounds import alternate, ratio, report, spread
from tests.support.workspace.diffs import apply_diff, undo_diff

WORDS = ["changeBg", "setVar", "jumpScene", "choose", "label", "bgm", "end", "intro", "say"]
SHAPES = {  # lines, edits, the share of lines that occur once, the number of other lines
    "2000_edits_unique": (20_000, 2000, 0.8, 100),
    "2000_edits_common": (20_000, 2000, 0.3, 100),
    "50_edits": (20_000, 50, 0.8, 100),
}
REPETITIVE = (4000, 400, 0.0, 5)


def texts(lines: int, edits: int, unique: float, others: int) -> tuple[str, str]:
    """Return a text and its edited version."""
    rng = random.Random(5)
    common = [f"wait:{number};" for number in range(others)]
    old = [
        f"{rng.choice(WORDS)}:{number};" if rng.random() < unique else rng.choice(common)
        for number in range(lines)
    ]
    new = list(old)
    for number in range(edits):
        position, kind = rng.randrange(len(new)), rng.random()
        replaced = (
            [new[position] + " edited"] if kind < 0.4 else [] if kind < 0.7 else [f"in {number}"]
        )
        new[position : position + (0 if kind >= 0.7 else 1)] = replaced
    return "\n".join(old), "\n".join(new)


def _ms(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def _against_git(folder: Path, old: str, new: str) -> dict[str, object]:
    workspace = ProjectWorkspace("t", folder / "root", folder / "state", WorkspacePolicy(), "bench")
    workspace.root.mkdir(exist_ok=True)
    (workspace.root / "old.txt").write_text(old)
    (workspace.root / "new.txt").write_text(new)
    git = ["git", "diff", "--no-index", "-U0", "old.txt", "new.txt"]
    hunks = diff_lines(old, new)
    assert (apply_diff(old, hunks), undo_diff(new, hunks)) == (new, old)
    ms = alternate(
        {
            "git": lambda: _ms(
                lambda: subprocess.run(git, cwd=workspace.root, capture_output=True)
            ),
            "ours": lambda: _ms(lambda: diff_lines(old, new)),
            "dry_run": lambda: _ms(lambda: preview_text(workspace, "old.txt", new)),
        }
    )
    return {
        "ours_ms": spread(ms["ours"]),
        "dry_run_ms": spread(ms["dry_run"]),
        "git_ms": spread(ms["git"]),
        "ratio": ratio(ms["ours"], ms["git"]),
        "dry_run_ratio": ratio(ms["dry_run"], ms["git"]),
        "goal": 3.0,
    }


def _against_difflib(old: str, new: str) -> dict[str, object]:
    a, b = old.split("\n"), new.split("\n")
    ms = alternate(
        {
            "difflib": lambda: _ms(difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes),
            "ours": lambda: _ms(lambda: diff_lines(old, new)),
        },
        rounds=3,
    )
    return {
        "ours_ms": spread(ms["ours"]),
        "difflib_ms": spread(ms["difflib"]),
        "times_faster": ratio(ms["difflib"], ms["ours"]),
        "goal": 20.0,
    }


def main() -> None:
    """Measure and report."""
    with tempfile.TemporaryDirectory() as folder:
        git = {name: _against_git(Path(folder), *texts(*shape)) for name, shape in SHAPES.items()}
    report("dry_diff", **git, repetitive=_against_difflib(*texts(*REPETITIVE)))


if __name__ == "__main__":
    main()
