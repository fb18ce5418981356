"""Fallback of calls whose runner cannot be reached: `config.onUnreachable` of the target.

With `fallback_local` the local workspace tool of the same name executes the call instead. Only a
call of which nothing was sent falls back; otherwise it could be executed twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from runners.gateway.request import RunnerTarget
from runners.tools.base import Tool, ToolResult
from runners.tools.registry import get_tool

_UNREACHED = frozenset({"connect", "timeout", "no_endpoint"})


@dataclass(frozen=True, slots=True)
class RemoteCall:
    """Marks a call that a runner executes, even if a local tool has the same name.

    Attributes:
        fallback_target_id: target of the local tool if the call falls back.
        may_fall_back: whether the caller may use the local tool.
    """

    fallback_target_id: str | None = None
    may_fall_back: bool = True


def local_tool(name: str) -> Tool | None:
    """Return the local tool that can replace a runner's tool of this name, or None."""
    own = get_tool(name)
    return own if own is not None and own.kind == "workspace" and not own.uses_browser else None


def with_fallback(name: str, result: ToolResult, runner: RunnerTarget) -> ToolResult:
    """Return the result of a runner's call. If the runner was not reached and its target falls
    back, `details.fallback` is `local`, or `none` if there is no local tool of that name.
    """
    details = dict((result.error or {}).get("details") or {})
    unreached = details.get("reason") in _UNREACHED and details.get("effect") == "none"
    if result.ok or not unreached or not runner.falls_back:
        return result
    error = dict(result.error or {})
    if local_tool(name) is None:
        error["message"] = f"{error['message']} There is no tool {name[:64]} here to fall back to."
        return replace(result, error=error | {"details": details | {"fallback": "none"}})
    return replace(result, error=error | {"details": details | {"fallback": "local"}})


def falls_back(result: ToolResult) -> bool:
    """Return whether the local tool is to execute the call, because the runner was not reached."""
    details = (result.error or {}).get("details") or {}
    return not result.ok and details.get("fallback") == "local"
