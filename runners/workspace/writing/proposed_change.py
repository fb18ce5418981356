"""What a write would change, as a unified diff: for a person who decides on the call.

Nothing is recorded: a tool's preview, which allows the write, is the caller's to request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runners.workspace.errors import PathNotFound
from runners.workspace.files.paths import display_path
from runners.workspace.files.sandbox import Sandbox, decode_text
from runners.workspace.workspace import ProjectWorkspace
from runners.workspace.writing.crash_recovery import content_digest
from runners.workspace.writing.line_diff import changed_parts
from runners.workspace.writing.replacement import replace_all

_CONTEXT = 3  # unchanged lines before and after a change


@dataclass(frozen=True, slots=True)
class ProposedChange:
    """What a write would change.

    Attributes:
        diff: a unified diff; empty: nothing.
        basis: digest of the file's content that the diff was made against.
    """

    diff: str
    basis: str


def proposed_diff(
    workspace: ProjectWorkspace, tool: str, args: Mapping[str, Any], *, deadline: float
) -> ProposedChange:
    """Return what `write_to_file` or `replace_in_file` would change now.

    Args:
        args: arguments of the tool that match its schema.
        deadline: `time.monotonic()` value by which the replacement must have ended.

    Raises:
        WorkspaceFailed: The file cannot be read, or the call would fail.
    """
    limit, path = workspace.policy.max_read_bytes, args["path"]
    content = read_current(workspace, path)
    with Sandbox(workspace.root, workspace.policy.forbidden) as sandbox:
        name = sandbox.normalize_path(path)
    if content is None and tool != "write_to_file":
        raise PathNotFound(f"{display_path(path)} does not exist.")
    old = None if content is None else decode_text(content, path)
    before, basis = old or "", content_digest(content)
    if tool == "write_to_file":
        is_added = args.get("mode") == "append"
        new = before + args["content"] if is_added else args["content"]
        return ProposedChange(unified_diff(name, old, new), basis)
    replaced = replace_all(
        before,
        find=args["find"],
        replace=args["replace"],
        flags=args.get("flags"),
        size_limit=limit,
        deadline=deadline,
    )
    return ProposedChange(unified_diff(name, old, replaced.text), basis)


def read_current(workspace: ProjectWorkspace, path: str) -> bytes | None:
    """Return a file's content; None: it does not exist.

    Raises:
        WorkspaceFailed: It cannot be read.
    """
    with Sandbox(workspace.root, workspace.policy.forbidden) as sandbox:
        name = sandbox.normalize_path(path)
        try:
            return sandbox.read(name, limit=workspace.policy.max_read_bytes)
        except PathNotFound:
            return None


def unified_diff(path: str, old: str | None, new: str) -> str:
    """Return the unified diff of two texts; None: the file does not exist."""
    if old == new:
        return ""
    a, b = [] if old is None else old.split("\n"), new.split("\n")
    lines = [f"--- {path}" if old is not None else "--- /dev/null", f"+++ {path}"]
    return "\n".join([*lines, *_hunks(a, b)])


def _hunks(a: list[str], b: list[str]) -> Iterator[str]:
    for group in _groups(changed_parts(a, b)):
        first, last = group[0], group[-1]
        start, new_start = max(first[0] - _CONTEXT, 0), max(first[2] - _CONTEXT, 0)
        end, new_end = min(last[1] + _CONTEXT, len(a)), min(last[3] + _CONTEXT, len(b))
        yield f"@@ -{start + 1},{end - start} +{new_start + 1},{new_end - new_start} @@"
        at = start
        for i1, i2, j1, j2 in group:
            yield from map(_unchanged, a[at:i1])
            yield from (f"-{line}" for line in a[i1:i2])
            yield from (f"+{line}" for line in b[j1:j2])
            at = i2
        yield from map(_unchanged, a[at:end])


def _groups(parts: list[tuple[int, int, int, int]]) -> Iterator[list[tuple[int, int, int, int]]]:
    """Yield changes whose context overlaps together."""
    group: list[tuple[int, int, int, int]] = []
    for part in parts:
        if group and part[0] - group[-1][1] > 2 * _CONTEXT:
            yield group
            group = []
        group.append(part)
    if group:
        yield group


def _unchanged(line: str) -> str:
    return f" {line}" if line else ""
