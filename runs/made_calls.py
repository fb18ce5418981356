"""Tool calls that steps made, and what the audit log tells of each.

A call that may change a workspace, or that a runner performs, is told before it is made
(`tool.called`) and when it is over (`tool.succeeded`, `tool.failed`), so that one whose worker was
lost is there too. Of any other there is one row, `tool.called`, written with its step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from decisions.audit import Deed
from decisions.deeds import ToolUse
from runners.base import Effect, ToolResult
from runners.registry import get_tool
from runs.models import Run


@dataclass(slots=True)
class MadeCall:
    """One call that a step made.

    Attributes:
        about: what the audit log tells of a call that is announced: targetId, path.
        is_announced: it was told before it was made.
        failed_code: why it failed, or that it never came to its end; empty where it succeeded.
    """

    tool: str
    args_digest: str
    about: Mapping[str, str]
    is_announced: bool = False
    failed_code: str = "interrupted"
    snapshot_id: str = ""

    @classmethod
    def of(cls, use: ToolUse) -> MadeCall:
        """Return a call that is about to be made."""
        tool, args = get_tool(use.tool), use.args if use.shown is None else use.shown
        if tool is None:
            return cls(use.tool, use.digest, {"targetId": use.target_id or ""}, is_announced=True)
        if tool.kind != "workspace" or tool.effect == Effect.READ:
            return cls(use.tool, use.digest, {})
        about = {"targetId": use.target_id} if use.target_id is not None else {}
        if isinstance(path := args.get("path"), str):
            about["path"] = path[:300]
        return cls(use.tool, use.digest, about, is_announced=True)

    def ended(self, result: ToolResult) -> None:
        """Note what came of it."""
        self.failed_code = "" if result.ok else str((result.error or {}).get("errorCode"))
        self.snapshot_id = snapshot_of(result)


def snapshot_of(result: ToolResult) -> str:
    """Return the snapshot that a call left of what it wrote; empty where it left none."""
    output = result.output
    return str(output.get("snapshotId") or "") if isinstance(output, Mapping) else ""


def begun(run: Run, step: int, call: MadeCall) -> Deed:
    """Return the audit row of a call that is about to be made."""
    return _deed("tool.called", run, _about(step, call))


def over(run: Run, step: int, call: MadeCall) -> Deed:
    """Return the audit row of a call that is over."""
    told = _about(step, call) | {"ok": not call.failed_code}
    if not call.is_announced:
        failed = {"errorCode": call.failed_code} if call.failed_code else {}
        return _deed("tool.called", run, told | failed)
    if call.failed_code:
        return _deed("tool.failed", run, told | {"code": call.failed_code})
    kept = {"snapshotId": call.snapshot_id} if call.snapshot_id else {}
    return _deed("tool.succeeded", run, told | kept)


def _about(step: int, call: MadeCall) -> dict[str, Any]:
    return {"tool": call.tool, "step": step, "argsDigest": call.args_digest, **call.about}


def _deed(action: str, run: Run, told: Mapping[str, Any]) -> Deed:
    return Deed(action, run.principal_id, "run", run.id, run.tenant_id, run.workspace_id, told)
