"""What becomes of a call whose runner cannot be reached: `config.onUnreachable` of its target.

`fallback_local` has one of our own tools do it, where there is one of that name that works on
files: the built-in local target is the last of the choice (runners.md, "Execution target"). Only a
call of which nothing was sent falls back, or it might be done twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from runners.gateway.request import RunnerTarget
from runners.tools.base import Tool, ToolResult
from runners.tools.registry import get_tool

_UNREACHED = frozenset({"connect", "timeout", "no_endpoint"})


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """That a runner performs a call, whatever it is called: its name may be that of one of ours.

    Attributes:
        fallback_target_id: where our own tool works if the runner is not reached and its target
            falls back.
        may_fall_back: whether our own tool may be called for whoever calls.
    """

    fallback_target_id: str | None = None
    may_fall_back: bool = True


def local_tool(name: str) -> Tool | None:
    """Return our own tool that can take the place of a runner's of this name."""
    own = get_tool(name)
    return own if own is not None and own.kind == "workspace" and not own.uses_browser else None


def with_fallback(name: str, result: ToolResult, runner: RunnerTarget) -> ToolResult:
    """Return what came of a runner's call; of one that did not reach it, `details.fallback` says
    what becomes of it where its target falls back: local, or none.
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
    """Tell whether one of our own tools is to do what a runner was not reached for."""
    details = (result.error or {}).get("details") or {}
    return not result.ok and details.get("fallback") == "local"
