"""The tool `write_to_file`: write a text file, or preview the change (S4 §1.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field, StrictBool, StrictStr

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runners.workspace.call_context import require_workspace
from runners.workspace.cancellation import run_to_completion
from runners.workspace.contract_schema import contract_schema
from runners.workspace.hints import add_hints
from runners.workspace.workspace import ProjectWorkspace
from runners.workspace.writing.write_text import LOCK_WAIT_S, compute_preview, write_text

REQUEST = contract_schema(
    "write_to_file.request",
    {
        "path": {"type": "string", "minLength": 1},
        "content": {
            "type": "string",
            "description": "New full content (overwrite) or appended chunk",
        },
        "mode": {"type": "string", "enum": ["overwrite", "append"], "default": "overwrite"},
        "dryRun": {"type": "boolean", "default": True},
        "idempotencyKey": {"type": "string"},
    },
    ["path", "content", "dryRun"],
)

_HUNK: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "startOld": {"type": "integer", "minimum": 1},
        "lenOld": {"type": "integer", "minimum": 0},
        "startNew": {"type": "integer", "minimum": 1},
        "lenNew": {"type": "integer", "minimum": 0},
        "linesOld": {"type": "array", "items": {"type": "string"}},
        "linesNew": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["startOld", "lenOld", "startNew", "lenNew", "linesOld", "linesNew"],
}

RESPONSE = contract_schema(
    "write_to_file.response",
    {
        "applied": {"type": "boolean"},
        "diff": {
            "type": "object",
            "properties": {
                "type": {"type": "string", "const": "line"},
                "hunks": {"type": "array", "items": _HUNK},
            },
            "required": ["type", "hunks"],
        },
        "snapshotId": {"type": "string"},
        "bytesWritten": {"type": "integer", "minimum": 0},
    },
    ["applied"],
)


class WriteToFile(Closed):
    """What to write or preview."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, strict=True)

    path: StrictStr = Field(min_length=1)
    content: StrictStr
    mode: Literal["overwrite", "append"] = "overwrite"
    dry_run: StrictBool = Field(alias="dryRun")
    # S4's schema allows an empty key; it is treated as none.
    idempotency_key: StrictStr | None = Field(default=None, alias="idempotencyKey", max_length=256)


@tool(
    "write_to_file",
    kind="workspace",
    effect=Effect.ONCE,
    timeout_ms=60_000,
    request=REQUEST,
    response=RESPONSE,
)
async def write_to_file(args: WriteToFile, ctx: ToolContext) -> Mapping[str, Any]:
    """Write a UTF-8 text file of the workspace: replace its content (overwrite) or append to it.

    First call it with dryRun true: it returns a line diff and changes nothing. Then call it with
    dryRun false and the same path, content and mode within 15 minutes: it writes the file, unless
    it has changed meanwhile (E_CONFLICT), and returns the snapshotId of the previous content. With
    an idempotencyKey (at most 256 characters), a repeated call does not write again.
    """
    workspace = require_workspace(ctx)
    with add_hints(workspace):
        if args.dry_run:
            return await _preview(workspace, args)
        return await run_to_completion(asyncio.to_thread(_write, workspace, args, ctx))


async def _preview(workspace: ProjectWorkspace, args: WriteToFile) -> dict[str, Any]:
    """Return the diff and record the preview; if cancelled during the diff, record nothing."""
    preview = await asyncio.to_thread(
        compute_preview, workspace, args.path, args.content, mode=args.mode
    )
    await run_to_completion(asyncio.to_thread(preview.record))
    return {"applied": False, "diff": {"type": "line", "hunks": preview.hunks}}


def _write(workspace: ProjectWorkspace, args: WriteToFile, ctx: ToolContext) -> dict[str, Any]:
    result = write_text(
        workspace,
        args.path,
        args.content,
        mode=args.mode,
        wait_s=ctx.seconds_left(LOCK_WAIT_S),
        expected=ctx.confirmed_basis,
        require_preview=workspace.policy.write_requires_diff,
        idempotency_key=args.idempotency_key or None,
    )
    return {"applied": True, "snapshotId": result.snapshot_id, "bytesWritten": result.bytes_written}
