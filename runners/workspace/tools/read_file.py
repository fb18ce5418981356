"""The tool `read_file`: read a text file of the workspace (S4 §1.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictInt, StrictStr

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runners.workspace.call_context import require_workspace
from runners.workspace.contract_schema import contract_schema
from runners.workspace.files.sandbox import Sandbox, decode_text
from runners.workspace.hints import READ_HINTS, add_hints
from runners.workspace.workspace import ProjectWorkspace

REQUEST = contract_schema(
    "read_file.request",
    {
        "path": {"type": "string", "minLength": 1},
        "maxBytes": {"type": "integer", "minimum": 1},
    },
    ["path"],
)
RESPONSE = contract_schema(
    "read_file.response",
    {
        "path": {"type": "string"},
        "content": {"type": "string"},
        "encoding": {"type": "string", "enum": ["utf-8"], "default": "utf-8"},
        "bytes": {"type": "integer", "minimum": 0},
    },
    ["path", "content"],
)


class ReadFile(Closed):
    """The file, and its maximum size."""

    path: StrictStr = Field(min_length=1)
    max_bytes: StrictInt | None = Field(default=None, ge=1, alias="maxBytes")


@tool(
    "read_file",
    kind="workspace",
    effect=Effect.READ,
    timeout_ms=15_000,
    request=REQUEST,
    response=RESPONSE,
)
async def read_file(args: ReadFile, ctx: ToolContext) -> Mapping[str, Any]:
    """Read a whole UTF-8 text file. A file larger than maxBytes, or than the workspace allows, is
    an error; it is never truncated.
    """
    return await asyncio.to_thread(_read, require_workspace(ctx), args)


def _read(workspace: ProjectWorkspace, args: ReadFile) -> dict[str, Any]:
    limit = min(workspace.policy.max_read_bytes, args.max_bytes or workspace.policy.max_read_bytes)
    with (
        add_hints(workspace, READ_HINTS),
        Sandbox(workspace.root, workspace.policy.forbidden) as sandbox,
    ):
        name = sandbox.normalize_path(args.path)
        data = sandbox.read(args.path, limit=limit)
        content = decode_text(data, name)
    return {"path": name, "content": content, "encoding": "utf-8", "bytes": len(data)}
