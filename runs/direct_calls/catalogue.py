"""What tools there are, and where a caller may have them executed."""

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
    """Return {tools}: every tool with its schemas, what it does to the world, and its targets; ours
    first, then those of runners, which may have the name of one of ours.
    """
    principal.require("tools:read")
    targets = visible_targets(Caller.of(principal)).order_by("-is_default", "name", "id")
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for target in targets:
        shown = {
            "targetId": target.id,
            "name": target.name,
            "isDefault": target.is_default,
            "enabled": target.enabled,
        }
        by_kind.setdefault(target.kind, []).append(shown)
    own = [_shown(tool, by_kind.get(tool.kind, [])) for tool in list_tools()]
    has_runners = TargetKind.DOCKER_RUNNER in by_kind
    offered = list_offered(Caller.of(principal)) if has_runners else []
    return {"tools": own + [_shown_elsewhere(tool) for tool in offered]}


def effect_of(tool: Tool) -> str:
    """Return what a tool does to the world: read, write what is kept here, or external."""
    if tool.effect == Effect.READ:
        return "read"
    return "external" if tool.developer or tool.kind != "workspace" else "write"


def _shown(tool: Tool, targets: list[dict[str, Any]]) -> dict[str, Any]:
    effect = effect_of(tool)
    answers = {"outputSchema": dict(tool.response)} if tool.response is not None else {}
    return {
        "name": tool.name,
        "kind": tool.kind,
        "description": tool.description,
        "effect": effect,
        "risk": _RISKS[effect],
        "developer": tool.developer,
        "inputSchema": input_schema(tool),
        **answers,
        "targets": targets if tool.kind == "workspace" else [],
    }


def _shown_elsewhere(tool: OfferedTool) -> dict[str, Any]:
    """Return a tool of runners: what it does out there is its runner's word, so it counts as
    external.
    """
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
