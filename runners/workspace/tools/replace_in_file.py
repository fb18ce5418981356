"""The tool `replace_in_file`: find and replace in one file (S4 §1.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, StrictStr

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runners.workspace.call_context import require_workspace
from runners.workspace.cancellation import run_to_completion
from runners.workspace.contract_schema import contract_schema
from runners.workspace.hints import add_hints
from runners.workspace.workspace import ProjectWorkspace
from runners.workspace.writing.replacement import Replacement, replace_all
from runners.workspace.writing.write_text import LOCK_WAIT_S, change_text

REQUEST = contract_schema(
    "replace_in_file.request",
    {
        "path": {"type": "string"},
        "find": {
            "type": "string",
            "description": "String or JS-style regex literal e.g. (?m)^hello$",
        },
        "replace": {"type": "string"},
        "flags": {"type": "string", "description": "Regex flags, if regex used"},
    },
    ["path", "find", "replace"],
)

RESPONSE = contract_schema(
    "replace_in_file.response",
    {"count": {"type": "integer", "minimum": 0}},
    ["count"],
)
_WRITE_RESERVE_S = 2.0  # of the call's time, reserved for writing the file


class ReplaceInFile(Closed):
    """The file, what to find, and its replacement."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, strict=True)

    path: StrictStr
    find: StrictStr
    replace: StrictStr
    flags: StrictStr | None = None


@tool(
    "replace_in_file",
    kind="workspace",
    effect=Effect.ONCE,
    timeout_ms=30_000,
    request=REQUEST,
    response=RESPONSE,
)
async def replace_in_file(args: ReplaceInFile, ctx: ToolContext) -> Mapping[str, Any]:
    """Replace every match of `find` in a file of the workspace and return the number of matches.

    `find` is literal unless `flags` (of i, m, s, g, u; may be empty) are given, or it is written as
    /pattern/flags, or begins with a group of flags such as (?m). Patterns use RE2's syntax, without
    lookaround and backreferences; `replace` may then contain $1, $<name>, $& and $$. The previous
    content is stored as a snapshot; without a match nothing is written.
    """
    workspace = require_workspace(ctx)
    with add_hints(workspace):
        return {"count": await run_to_completion(asyncio.to_thread(_replace, workspace, args, ctx))}


def _replace(workspace: ProjectWorkspace, args: ReplaceInFile, ctx: ToolContext) -> int:
    counts = [0]

    def change(text: str) -> str | None:
        replaced: Replacement = replace_all(
            text,
            find=args.find,
            replace=args.replace,
            flags=args.flags,
            size_limit=workspace.policy.max_read_bytes,
            deadline=ctx.deadline - _WRITE_RESERVE_S,
        )
        counts[0] = replaced.count
        return replaced.text if replaced.count else None

    wait_s, expected = ctx.seconds_left(LOCK_WAIT_S), ctx.confirmed_basis
    change_text(workspace, args.path, change, wait_s=wait_s, expected=expected)
    return counts[0]
