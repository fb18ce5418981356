"""A process that writes one file again and again until it is killed.

python -m tests.faults.killed_writer ROOT STATE
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

from runners.workspace.workspace import ProjectWorkspace, WorkspacePolicy
from runners.workspace.writing.write_text import preview_text, write_text

SIZE = 300_000


def content_of(number: int) -> str:
    """Return the content of the nth write: one character repeated, so that a mixed file is
    detected."""
    return chr(ord("a") + number % 26) * SIZE


def make_workspace(root: Path, state: Path) -> ProjectWorkspace:
    """Return the workspace in which the process writes."""
    policy = WorkspacePolicy(snapshot_retention=3)
    return ProjectWorkspace("target_1", root, state, policy, "local")


def main() -> None:
    """Write until killed; print a dot for each write that was answered."""
    workspace = make_workspace(Path(sys.argv[1]), Path(sys.argv[2]))
    for number in itertools.count(os.getpid()):
        content, key = content_of(number), f"{os.getpid()}-{number}"
        preview_text(workspace, "deep/a.txt", content)
        write_text(workspace, "deep/a.txt", content, require_preview=True, idempotency_key=key)
        sys.stdout.write(".")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
