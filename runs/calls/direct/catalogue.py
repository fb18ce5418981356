"""The list of tools that a caller may call, with the targets that each may run on."""

from __future__ import annotations

from typing import Any

from decisions.identity.principals import Principal
from runners.invocation.arguments import input_schema
from runners.models import TargetKind
from runners.remote_tools.catalogue import OfferedTool, list_offered
from runners.targets.targets import Caller, visible_targets
from runners.tools.base import Effect, Tool
from runners.tools.registry import list_tools

_RISKS = {"read": "low", "write": "medium", "external": "high"}


def list_callable_tools(*, principal: Principal) -> dict[str, Any]:
    """Return {tools}: every tool with its schemas, effect and targets, local tools first. Tools of
    runners follow, which may have the same name as a local one.
    """
    principal.require("tools:read")
    targets = visible_targets(Caller.of(principal)).order_by("-is_default", "name", "id")
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for target in targets:
        entry = {
            "targetId": target.id,
            "name": target.name,
            "isDefault": target.is_default,
            "enabled": target.enabled,
        }
        by_kind.setdefault(target.kind, []).append(entry)
    local = [_local_tool(tool, by_kind.get(tool.kind, [])) for tool in list_tools()]
    has_runners = TargetKind.DOCKER_RUNNER in by_kind
    offered = list_offered(Caller.of(principal)) if has_runners else []
    return {"tools": local + [_runner_tool(tool) for tool in offered]}


def effect_of(tool: Tool) -> str:
    """Return a tool's effect: read, write (in a workspace), or external."""
    if tool.effect == Effect.READ:
        return "read"
    return "external" if tool.developer or tool.kind != "workspace" else "write"


def _local_tool(tool: Tool, targets: list[dict[str, Any]]) -> dict[str, Any]:
    effect = effect_of(tool)
    output = {"outputSchema": dict(tool.response)} if tool.response is not None else {}
    return {
        "name": tool.name,
        "kind": tool.kind,
        "description": tool.description,
        "effect": effect,
        "risk": _RISKS[effect],
        "developer": tool.developer,
        "inputSchema": input_schema(tool),
        **output,
        "targets": targets if tool.kind == "workspace" else [],
    }


def _runner_tool(tool: OfferedTool) -> dict[str, Any]:
    """Return a runner's tool; its effect is unknown here, so it counts as external."""
    targets = [
        {
            "targetId": on.target_id,
            "name": on.target_name,
            "isDefault": on.is_default,
            "enabled": on.enabled,
            "policy": on.verdict.decision,
        }
        for on in tool.targets
    ]
    return {
        "name": tool.name,
        "kind": str(TargetKind.DOCKER_RUNNER),
        "description": tool.description,
        "effect": "external",
        "risk": tool.risk,
        "developer": False,
        "inputSchema": tool.input_schema,
        "targets": targets,
    }
