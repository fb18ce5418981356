"""One call of a tool outside a run: checked, judged by policy, audited before and after, done.

Tools that only touch files are done here, in the door's process. Those that need a browser are
carried by a worker, as a run of `call_tools` that is waited for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.db import transaction

from artifacts.models import Artifact
from artifacts.services import KeptBlob, artifact_rows, keep_blob
from decisions.audit import Deed, record
from decisions.deeds import ToolUse, admit_call, begin, use_of
from decisions.errors import InvalidInput, Refused, ToolNotFound
from decisions.ids import new_id
from decisions.principals import Principal
from decisions.storable import storable
from decisions.threads import in_thread
from decisions.trace import brought_traceparent, made_for
from runners.arguments import check_args, scope_of
from runners.base import Tool, ToolCall, ToolContext, ToolResult
from runners.errors import ToolFailed
from runners.fallback import falls_back
from runners.gateway.wanted import RunnerTarget
from runners.invoke import invoke, raise_if_interrupted
from runners.registry import get_tool
from runners.remote import find_runner, runner_of
from runners.remote_tools import KIND, find_tool, goes_elsewhere
from runners.s4 import FailedCall, failed_call
from runners.targets import Caller, choose_target
from runners.workspace.place import Workspace
from runners.workspace.unbroken import unbroken
from runners.workspaces import check_may_use, open_workspace
from runs.events.types import EventType
from runs.made_calls import snapshot_of
from runs.open_calls import INTERRUPTED, CarriedCall, close_call, cut_off, open_call
from runs.tools.asked import Answered, AskedCall
from runs.tools.carried import hand_in, wait_for
from runs.tools.large import fitted
from runs.tools.refusals import refusals_told


@dataclass(slots=True)
class _Admitted:
    """A call that may be made; `blobs` is what its tool kept."""

    tool: Tool
    use: ToolUse
    place: Workspace | RunnerTarget | None
    call_id: str
    blobs: list[KeptBlob] = field(default_factory=list)


async def call_tool(*, principal: Principal, asked: AskedCall) -> Answered:
    """Call a tool and return what it answered.

    Raises:
        ToolNotFound: There is no tool of this name here, nor a runner that could have it.
        TargetNotFound: It names a target that is no runner of the caller's.
        Forbidden: The caller lacks the tool's scope.
        PolicyDenied, ConfirmationRequired, Conflict: As `deeds.admit_call` and `begin`; once a
            person confirmed, the same call with the same key is performed.
        FailedCall: The tool failed, or its arguments or its target are wrong.
    """
    began = time.monotonic()
    admitted = await in_thread(_admit, principal, asked)
    if admitted.tool.uses_browser:
        return await _carried(principal, admitted, _limit_ms(admitted.tool, asked), began)
    outcome = cut_off(INTERRUPTED, asked.name, _about(admitted))
    try:
        context = _context(principal, admitted, asked)
        result = await invoke(_call_of(admitted.use), context)
        output, marks = await _fitted(admitted, result, context)
        outcome = _outcome(admitted.tool, result)
    finally:
        outcome["durationMs"] = int((time.monotonic() - began) * 1000)
        # Also where whoever asked has hung up: what was begun is said to have ended.
        await asyncio.shield(in_thread(_record_end, principal, admitted, outcome))
    raise_if_interrupted()
    if falls_back(result):
        return await _here_instead(principal, admitted, asked, result)
    if not result.ok:
        raise _failed(admitted.tool, result)
    kept = [blob.artifact_id for blob in admitted.blobs]
    return Answered(output, admitted.call_id, artifact_ids=kept, marks=marks)


async def _here_instead(
    principal: Principal, admitted: _Admitted, asked: AskedCall, result: ToolResult
) -> Answered:
    """Have our own tool do what its runner was not reached for: a call like any other, with its own
    place, policy and audit.
    """
    reason = (result.error or {})["details"]["reason"]
    telling = _deed("tool.fell_back", principal, admitted.tool,
                    {**_about(admitted), "reason": reason})  # fmt: skip
    await in_thread(record, telling)
    done = await call_tool(principal=principal, asked=replace(asked, target_id=None))
    return replace(done, marks={**done.marks, "fellBackFrom": admitted.use.target_id})


async def _fitted(
    admitted: _Admitted, result: ToolResult, context: ToolContext
) -> tuple[Any, Mapping[str, Any]]:
    """Return what a call answered; of a runner as in a run: what is large is shortened, and whole
    in an artifact.
    """
    if admitted.tool.kind != KIND or not result.ok:
        return storable(result.output), {}
    return await fitted(admitted.tool.name, result.output, context.save_artifact)


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
    tool = get_tool(asked.name)
    if tool is None or goes_elsewhere(Caller.of(principal), asked.name, asked.target_id):
        tool, asked = _on_runner(principal, asked)
    principal.require(scope_of(tool))
    try:
        return _for_tool(principal, tool, asked)
    except ToolFailed as failed:
        raise failed_call(failed.as_dict(), in_s4=tool.kind == "workspace") from None


def _on_runner(principal: Principal, asked: AskedCall) -> tuple[Tool, AskedCall]:
    """Return the tool of a runner, and the call with that runner as its target."""
    target_id = asked.target_id
    if target_id is None:
        default = choose_target(Caller.of(principal), KIND, None)
        target_id = default.id if default is not None else None
    tool = find_tool(asked.name, target_id=target_id, elsewhere=True)
    if tool is None:
        raise ToolNotFound(f"There is no tool {asked.name[:64]!r}.")
    return tool, replace(asked, target_id=target_id)


def _for_tool(principal: Principal, tool: Tool, asked: AskedCall) -> _Admitted:
    if tool.kind == KIND:
        caller = Caller.of(principal)
        runner = runner_of(find_runner(caller, asked.target_id), caller)
        use = use_of(principal, tool.name, asked.args, target_id=runner.target_id, key=asked.key)
        return _Admitted(tool, use, runner, new_id("call_"))
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

    place = admitted.place
    return ToolContext(
        run_id=admitted.call_id,
        trust=principal.trust,
        deadline=time.monotonic() + _limit_ms(admitted.tool, asked) / 1000,
        save_artifact=save_artifact,
        emit=partial(_tell, asked),
        workspace=place if isinstance(place, Workspace) else None,
        runner=place if isinstance(place, RunnerTarget) else None,
        session_id=new_id("sess_"),
        traceparent=brought_traceparent() or made_for(admitted.call_id),
    )


def _tell(asked: AskedCall, type_: str, data: Mapping[str, Any]) -> None:
    """Pass on what a runner's tool says as it works; a call that has no run has no log."""
    if asked.on_update is not None and type_ == EventType.TOOL_UPDATE:
        asked.on_update(str(data["delta"]))


def _call_of(use: ToolUse) -> ToolCall:
    return ToolCall(use.tool, use.args, use.target_id)


def _limit_ms(tool: Tool, asked: AskedCall) -> int:
    return min(tool.timeout_ms, asked.timeout_ms or tool.timeout_ms)


async def _carried(
    principal: Principal, admitted: _Admitted, limit_ms: int, began: float
) -> Answered:
    call = CarriedCall(admitted.use, admitted.call_id, _opening(principal, admitted))
    run_id = await unbroken(hand_in(principal, call, limit_ms))
    outcome = cut_off(INTERRUPTED, admitted.tool.name, _about(admitted))
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
    snapshot = snapshot_of(result)
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
    if not use.is_own:
        told["elsewhere"] = True
    path = use.args.get("path")
    return told | ({"path": path[:300]} if isinstance(path, str) else {})


def _deed(action: str, principal: Principal, tool: Tool, told: Mapping[str, Any]) -> Deed:
    place = principal.tenant_id, principal.workspace_id
    return Deed(action, principal.id, "tool", tool.name, *place, told)
