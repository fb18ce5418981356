"""The tool `list_files`: list a folder of the workspace (S4 §1.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictBool, StrictStr

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runners.workspace.call_context import require_workspace, thread_deadline
from runners.workspace.contract_schema import contract_schema
from runners.workspace.errors import TooLarge
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.hints import READ_HINTS, add_hints
from runners.workspace.workspace import ProjectWorkspace

MAX_ENTRIES = 100_000

REQUEST = contract_schema(
    "list_files.request",
    {
        "path": {"type": "string", "minLength": 1, "description": "Relative to projectRoot"},
        "globs": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Optional include patterns, e.g. ['**/*.txt']",
        },
        "dirsOnly": {"type": "boolean", "default": False},
    },
    ["path"],
)
RESPONSE = contract_schema(
    "list_files.response",
    {"entries": {"type": "array", "items": {"type": "string"}}},
    ["entries"],
)


class ListFiles(Closed):
    """The folder, and filters for its entries."""

    path: StrictStr = Field(min_length=1)
    globs: list[StrictStr] = Field(default=[])
    dirs_only: StrictBool = Field(default=False, alias="dirsOnly")


@tool(
    "list_files",
    kind="workspace",
    effect=Effect.READ,
    timeout_ms=15_000,
    request=REQUEST,
    response=RESPONSE,
)
async def list_files(args: ListFiles, ctx: ToolContext) -> Mapping[str, Any]:
    """List files and folders below a folder, as paths relative to it, sorted.

    Without globs: the entries of the folder itself. With globs: all paths that match one of them,
    at any depth (`*.txt` in the folder itself, `**/*.txt` anywhere below). Forbidden names and
    links are never listed.
    """
    workspace = require_workspace(ctx)
    return {"entries": await asyncio.to_thread(_list, workspace, args, thread_deadline(ctx))}


def _list(workspace: ProjectWorkspace, args: ListFiles, deadline: float) -> list[str]:
    with (
        add_hints(workspace, READ_HINTS),
        Sandbox(workspace.root, workspace.policy.forbidden) as sandbox,
    ):
        found = sandbox.find(args.path, globs=args.globs or ["*"], deadline=deadline)
    entries = found.folders if args.dirs_only else found.files + found.folders
    if len(entries) > MAX_ENTRIES:
        raise TooLarge(
            f"There are more than {MAX_ENTRIES} entries; name a folder further down, or use"
            " narrower globs.",
            details={"entries": len(entries), "limit": MAX_ENTRIES},
        )
    return sorted(entries)
