"""The tool `restore_snapshot`: read a snapshot of a file (S4 §2.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, Field, StrictStr

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runners.workspace.call_context import require_confirmed, require_workspace
from runners.workspace.contract_schema import contract_schema
from runners.workspace.errors import PathNotFound
from runners.workspace.hints import localized_hint
from runners.workspace.writing.snapshots import read_snapshot, snapshot_digest

REQUEST = contract_schema(
    "restore_snapshot.request",
    {
        "snapshotId": {
            "type": "string",
            "description": "快照 ID（格式：snap_YYYYMMDDThhmmss_<8hex>）",
            "pattern": r"^snap_\d{8}T\d{6}_[0-9a-f]{8}$",
        }
    },
    ["snapshotId"],
)

RESPONSE = contract_schema(
    "restore_snapshot.response",
    {
        "path": {"type": "string", "description": "文件路径（POSIX 格式，相对于项目根）"},
        "content": {"type": "string", "description": "文件内容（UTF-8 编码）"},
    },
    ["path", "content"],
)


class RestoreSnapshot(Closed):
    """The snapshot."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, strict=True)

    snapshot_id: StrictStr = Field(alias="snapshotId")


@tool(
    "restore_snapshot",
    kind="workspace",
    effect=Effect.READ,
    timeout_ms=15_000,
    request=REQUEST,
    response=RESPONSE,
)
async def restore_snapshot(args: RestoreSnapshot, ctx: ToolContext) -> Mapping[str, Any]:
    """Return the path and the content of a snapshot (`snapshotId`: an id of list_snapshots), for
    you to write back with write_to_file, first with dryRun true; it writes nothing itself.

    The content is empty if the file did not exist.
    """
    workspace = require_workspace(ctx)
    try:
        found, content = await asyncio.to_thread(
            read_snapshot, workspace.state, args.snapshot_id, forbidden=workspace.policy.forbidden
        )
    except PathNotFound as failed:
        failed.hint = localized_hint(
            workspace,
            zh="请用 list_snapshots 查看现有快照。",
            en="Use list_snapshots to see the existing snapshots.",
        )
        raise
    require_confirmed(ctx.confirmed_basis, snapshot_digest(found, content), found.path)
    return {"path": found.path, "content": content}
