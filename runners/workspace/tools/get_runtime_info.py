"""The tool `get_runtime_info`: the workspace's folder, policy and available tools (S4 §2.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runners.product import NAME, VERSION
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runners.workspace.call_context import require_workspace
from runners.workspace.contract_schema import contract_schema
from runners.workspace.workspace import ProjectWorkspace

_NAMES: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_ENABLED: dict[str, Any] = {"type": "boolean", "const": True}
_LIMIT: dict[str, Any] = {"type": "integer", "minimum": 1}

REQUEST = contract_schema(
    "get_runtime_info.request",
    {},
)
RESPONSE = contract_schema(
    "get_runtime_info.response",
    {
        "projectRoot": {"type": "string", "description": "项目根目录绝对路径"},
        "snapshotRetention": {"type": "integer", "minimum": 0, "description": "快照保留数量"},
        "sandbox": {
            "type": "object",
            "properties": {
                "forbiddenDirs": _NAMES,
                "maxReadBytes": _LIMIT,
                "textEncoding": {"type": "string", "enum": ["utf-8", "utf-16", "ascii"]},
            },
            "required": ["forbiddenDirs", "maxReadBytes", "textEncoding"],
        },
        "execution": {
            "type": "object",
            "description": "仅在启用时存在",
            "properties": {
                "enabled": _ENABLED,
                "allowedCommands": _NAMES,
                "timeoutMs": _LIMIT,
                "workingDir": {"type": "string"},
            },
            "required": ["enabled", "allowedCommands", "timeoutMs"],
        },
        "browser": {
            "type": "object",
            "description": "仅在启用时存在",
            "properties": {
                "enabled": _ENABLED,
                "allowedHosts": _NAMES,
                "timeoutMs": _LIMIT,
                "screenshotDir": {"type": "string"},
            },
            "required": ["enabled", "allowedHosts", "timeoutMs"],
        },
        "tools": {**_NAMES, "description": "当前注册的工具名称列表"},
        "server": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "version": {"type": "string", "pattern": "^\\d+\\.\\d+\\.\\d+$"},
            },
            "required": ["name", "version"],
        },
    },
    ["projectRoot", "snapshotRetention", "sandbox", "tools", "server"],
    closed=False,
)


class GetRuntimeInfo(Closed):
    """No arguments."""


@tool(
    "get_runtime_info",
    kind="workspace",
    effect=Effect.READ,
    timeout_ms=5_000,
    request=REQUEST,
    response=RESPONSE,
)
async def get_runtime_info(args: GetRuntimeInfo, ctx: ToolContext) -> Mapping[str, Any]:
    """Return the project's folder, the policy on what tools may read, write, run and open there,
    and the available tools.

    execution and browser are present only in developer mode, if their tools are offered. Remote
    callers get the folder's name instead of its path. If continuity.workspace.json is invalid,
    policyTrouble has the reason, and no other tool works.
    """
    workspace = require_workspace(ctx)
    policy = workspace.policy
    is_local = ctx.trust == "local"
    root = str(workspace.root) if is_local else workspace.root.name
    return {
        "projectRoot": root,
        "snapshotRetention": policy.snapshot_retention,
        "sandbox": {
            "forbiddenDirs": list(policy.forbidden),
            "maxReadBytes": policy.max_read_bytes,
            "textEncoding": "utf-8",
        },
        **(_developer_sections(workspace, root) if policy.developer and is_local else {}),
        **({"policyTrouble": workspace.policy_error} if workspace.policy_error else {}),
        "tools": list(workspace.offered_tools),
        "server": {"name": NAME, "version": VERSION},
    }


def _developer_sections(workspace: ProjectWorkspace, root: str) -> dict[str, Any]:
    policy = workspace.policy
    execution = {
        "enabled": True,
        "allowedCommands": list(policy.allowed_commands),
        "timeoutMs": policy.command_timeout_ms,
        "workingDir": root,
    }
    browser = {
        "enabled": True,
        "allowedHosts": list(policy.allowed_hosts),
        "timeoutMs": policy.browser_timeout_ms,
    }
    sections = {"execute_command": ("execution", execution), "browser_action": ("browser", browser)}
    return dict(sections[tool] for tool in sections if tool in workspace.offered_tools)
