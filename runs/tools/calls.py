"""One call of a tool outside a run: checked, judged by policy, audited before and after, done.

Tools that only touch files are done here, in the door's process. Those that need a browser are
carried by a worker, as a run of `call_tools` that is waited for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from artifacts.models import Artifact
from artifacts.services import KeptBlob, artifact_rows, keep_blob
from decisions.audit import Deed
from decisions.deeds import ToolUse, admit_call, begin, use_of
from decisions.errors import InvalidInput, Refused, ToolNotFound
from decisions.ids import new_id
from decisions.principals import Principal
from decisions.threads import in_thread
from runners.arguments import check_args, scope_of
from runners.base import Tool, ToolCall, ToolContext, ToolResult
from runners.errors import ToolFailed
from runners.invoke import invoke, raise_if_interrupted
from runners.registry import get_offered_tool
from runners.s4 import FailedCall, failed_call
from runners.targets import Caller
from runners.workspace.place import Workspace
from runners.workspace.unbroken import unbroken
from runners.workspaces import check_may_use, open_workspace
from runs.open_calls import INTERRUPTED, CarriedCall, close_call, cut_off, open_call
from runs.tools.carried import hand_in, wait_for
from runs.tools.refusals import refusals_told


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A direct call as a door hands it over.

    Attributes:
        timeout_ms: at most this long; the tool's own time otherwise.
        key: names the call, so that the one that a person confirmed is known again.
        offered: names of the tools that the door offers; all that may be used otherwise.
    """

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    target_id: str | None = None
    timeout_ms: int | None = None
    key: str = ""
    offered: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """What a call came to; one that failed is raised instead.

    Attributes:
        call_id: what the audit log names it.
        run_id: the run that carried it.
    """

    output: Mapping[str, Any]
    call_id: str
    run_id: str | None = None
    artifact_ids: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the answer of REST."""
        told: dict[str, Any] = {"ok": True, "output": dict(self.output), "callId": self.call_id}
        if self.run_id is not None:
            told["runId"] = self.run_id
        return told | ({"artifactIds": list(self.artifact_ids)} if self.artifact_ids else {})


@dataclass(slots=True)
class _Admitted:
    """A call that may be made; `blobs` is what its tool kept."""

    tool: Tool
    use: ToolUse
    workspace: Workspace | None
    call_id: str
    blobs: list[KeptBlob] = field(default_factory=list)


async def call_tool(*, principal: Principal, asked: AskedCall) -> Answered:
    """Call a tool and return what it answered.

    Raises:
        ToolNotFound: There is no tool of this name.
        Forbidden: The caller lacks the tool's scope.
        PolicyDenied, ConfirmationRequired, Conflict: As `deeds.admit_call` and `begin`; once a
            person confirmed, the same call with the same key is performed.
        FailedCall: The tool failed, or its arguments or its target are wrong.
    """
    began = time.monotonic()
    admitted = await in_thread(_admit, principal, asked)
    if admitted.tool.uses_browser:
        return await _carried(principal, admitted, _limit_ms(admitted.tool, asked), began)
    outcome = cut_off(INTERRUPTED, asked.name)
    try:
        result = await invoke(_call_of(admitted.use), _context(principal, admitted, asked))
        outcome = _outcome(admitted.tool, result)
    finally:
        outcome["durationMs"] = int((time.monotonic() - began) * 1000)
        # Also where whoever asked has hung up: what was begun is said to have ended.
        await asyncio.shield(in_thread(_record_end, principal, admitted, outcome))
    raise_if_interrupted()
    if not result.ok:
        raise _failed(admitted.tool, result)
    kept = [blob.artifact_id for blob in admitted.blobs]
    return Answered(result.output or {}, admitted.call_id, artifact_ids=kept)


def _admit(principal: Principal, asked: AskedCall) -> _Admitted:
    """Check a call and ask policy about it; commits that it begins, or that it was refused.

    A call that a worker carries begins with its run, in one transaction.
    """
    with refusals_told(principal=principal, name=asked.name):
        admitted = _checked(principal, asked)
        if not admitted.tool.uses_browser:
            approval = admit_call(admitted.use)
            with transaction.atomic():
                begin(approval)
                open_call(admitted.call_id, _opening(principal, admitted))
    return admitted


def _checked(principal: Principal, asked: AskedCall) -> _Admitted:
    tool = get_offered_tool(asked.name)
    if tool is None:
        raise ToolNotFound(f"There is no tool {asked.name[:64]!r}.")
    principal.require(scope_of(tool))
    try:
        return _for_tool(principal, tool, asked)
    except ToolFailed as failed:
        raise failed_call(failed.as_dict(), in_s4=tool.kind == "workspace") from None


def _for_tool(principal: Principal, tool: Tool, asked: AskedCall) -> _Admitted:
    workspace = None
    if tool.kind == "workspace":  # first: what is not to be had here has no wrong arguments
        offered = tuple(asked.offered) if asked.offered is not None else None
        caller = Caller.of(principal)
        workspace = open_workspace(caller, asked.target_id, offered=offered, tool=tool.name)
        check_may_use(tool, workspace, trust=principal.trust)
    elif asked.target_id is not None:
        raise InvalidInput(f"targetId: {tool.name} runs on no target that can be named.")
    args = check_args(tool, asked.args)
    target_id = workspace.target_id if workspace is not None else None
    use = use_of(principal, tool.name, args, target_id=target_id, key=asked.key, is_own=True)
    return _Admitted(tool, use, workspace, new_id("call_"))


def _context(principal: Principal, admitted: _Admitted, asked: AskedCall) -> ToolContext:
    async def save_artifact(data: bytes, *, name: str, mime_type: str, kind: str = "file") -> str:
        blob = await asyncio.to_thread(keep_blob, data, name=name, mime_type=mime_type, kind=kind)
        admitted.blobs.append(blob)
        return blob.artifact_id

    return ToolContext(
        run_id=admitted.call_id,
        trust=principal.trust,
        deadline=time.monotonic() + _limit_ms(admitted.tool, asked) / 1000,
        save_artifact=save_artifact,
        emit=lambda type_, data: None,  # nobody listens to a call that has no run
        workspace=admitted.workspace,
    )


def _call_of(use: ToolUse) -> ToolCall:
    return ToolCall(use.tool, use.args, use.target_id)


def _limit_ms(tool: Tool, asked: AskedCall) -> int:
    return min(tool.timeout_ms, asked.timeout_ms or tool.timeout_ms)


async def _carried(
    principal: Principal, admitted: _Admitted, limit_ms: int, began: float
) -> Answered:
    call = CarriedCall(admitted.use, admitted.call_id, _opening(principal, admitted))
    run_id = await unbroken(hand_in(principal, call, limit_ms))
    outcome = cut_off(INTERRUPTED, admitted.tool.name)
    try:
        raise_if_interrupted()
        carried = await wait_for(principal, run_id, limit_ms)
        outcome = _outcome(admitted.tool, carried.result)
    except Refused as refused:
        outcome = {"ok": False, "code": refused.code}
        raise
    finally:
        outcome |= {"runId": run_id, "durationMs": int((time.monotonic() - began) * 1000)}
        await asyncio.shield(in_thread(_record_end, principal, admitted, outcome))
    if not carried.result.ok:
        raise _failed(admitted.tool, carried.result)
    output = carried.result.output or {}
    return Answered(output, admitted.call_id, run_id, carried.artifact_ids)


def _failed(tool: Tool, result: ToolResult) -> FailedCall:
    return failed_call(result.error or {}, in_s4=tool.kind == "workspace")


def _outcome(tool: Tool, result: ToolResult) -> dict[str, Any]:
    """Return what the audit log tells of how a call ended: a failure with the code that its caller
    reads.
    """
    if not result.ok:
        return {"ok": False, "code": str(_failed(tool, result).error["errorCode"])}
    snapshot = (result.output or {}).get("snapshotId")
    return {"ok": True} | ({"snapshotId": snapshot} if snapshot else {})


def _record_end(principal: Principal, admitted: _Admitted, outcome: Mapping[str, Any]) -> None:
    action = "tool.succeeded" if outcome["ok"] else "tool.failed"
    place = {"tenant_id": principal.tenant_id, "workspace_id": principal.workspace_id}
    blobs = [(blob, None) for blob in admitted.blobs]
    with transaction.atomic():
        if blobs:
            Artifact.objects.bulk_create(
                artifact_rows(blobs, **place, run_id=admitted.call_id, ended_at=datetime.now(UTC))
            )
        closing = _deed(action, principal, admitted.tool, {**_about(admitted), **outcome})
        close_call(admitted.call_id, closing)


def _opening(principal: Principal, admitted: _Admitted) -> Deed:
    return _deed("tool.called", principal, admitted.tool, _about(admitted))


def _about(admitted: _Admitted) -> dict[str, Any]:
    use = admitted.use
    told: dict[str, Any] = {"callId": admitted.call_id, "argsDigest": use.digest}
    if use.target_id is not None:
        told["targetId"] = use.target_id
    path = use.args.get("path")
    return told | ({"path": path[:300]} if isinstance(path, str) else {})


def _deed(action: str, principal: Principal, tool: Tool, told: Mapping[str, Any]) -> Deed:
    place = principal.tenant_id, principal.workspace_id
    return Deed(action, principal.id, "tool", tool.name, *place, told)
