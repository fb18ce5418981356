"""The tool `list_snapshots`: list the snapshots of files of the workspace (S4 §2.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, Field, StrictFloat, StrictInt, StrictStr

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runners.workspace.call_context import require_workspace
from runners.workspace.contract_schema import contract_schema
from runners.workspace.writing import snapshots

REQUEST = contract_schema(
    "list_snapshots.request",
    {
        "limit": {
            "type": "number",
            "description": "最大返回数量（默认 50，最大 1000）。负数/NaN 会被规范化为 50",
            "default": 50,
            "minimum": 0,
            "maximum": 1000,
        },
        "path": {
            "type": "string",
            "description": "按路径过滤（POSIX 格式前缀匹配，如 'game/scene'）",
        },
    },
)

_SNAPSHOT: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "id": {
            "type": "string",
            "description": "快照 ID（格式：snap_YYYYMMDDThhmmss_<8hex>）",
            "pattern": r"^snap_\d{8}T\d{6}_[0-9a-f]{8}$",
        },
        "path": {"type": "string", "description": "文件路径（POSIX 格式，相对于项目根）"},
        "timestamp": {"type": "number", "description": "创建时间戳（毫秒）"},
        "contentHash": {
            "type": "string",
            "description": "内容 SHA-256 哈希（前 8 位）",
            "pattern": "^[0-9a-f]{8}$",
        },
        "idempotencyKey": {"type": "string", "description": "幂等性键（可选）"},
    },
    "required": ["id", "path", "timestamp", "contentHash"],
}

RESPONSE = contract_schema(
    "list_snapshots.response",
    {
        "snapshots": {
            "type": "array",
            "description": "快照元数据数组（按时间降序，timestamp 相同时按 id 降序）",
            "items": _SNAPSHOT,
        }
    },
    ["snapshots"],
)


class ListSnapshots(Closed):
    """A path filter, and how many snapshots to return."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, strict=True)

    limit: StrictInt | StrictFloat = Field(
        default=snapshots.DEFAULT_LIMIT, le=snapshots.MAX_LIMIT, allow_inf_nan=False
    )
    path: StrictStr | None = None


def with_limit(args: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments with a negative limit replaced by the default (S4 §2.4)."""
    limit = args.get("limit")
    is_negative = isinstance(limit, int | float) and not isinstance(limit, bool) and limit < 0
    return {**args, "limit": snapshots.DEFAULT_LIMIT} if is_negative else args


@tool(
    "list_snapshots",
    kind="workspace",
    effect=Effect.READ,
    timeout_ms=30_000,
    request=REQUEST,
    response=RESPONSE,
    repair_arguments=with_limit,
)
async def list_snapshots(args: ListSnapshots, ctx: ToolContext) -> Mapping[str, Any]:
    """List the snapshots that were stored before files were written, newest first.

    `path` is a prefix of their paths. `limit` is at most 1000; the default, also for a negative
    value, is 50.
    """
    workspace = require_workspace(ctx)
    found = await asyncio.to_thread(
        snapshots.list_snapshots,
        workspace.state,
        limit=args.limit,
        path=args.path,
        forbidden=workspace.policy.forbidden,
    )
    return {"snapshots": [one.as_dict() for one in found]}
