"""One call of a tool outside a run: checked, judged by policy, audited before and after, done.

Tools that only touch files are done here, in the door's process. Those that need a browser are
carried by a worker, as a run of `call_tools` that is waited for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from django.db import transaction

from artifacts.services import store_blob
from decisions.audit.record import record
from decisions.authorization.authorize import admit_call, begin, use_of
from decisions.errors import InvalidInput, Refused, ToolNotFound
from decisions.identity.principals import Principal
from decisions.infra.ids import new_id
from decisions.infra.threads import in_thread
from decisions.infra.trace_context import brought_traceparent, made_for
from decisions.validation.storable import storable
from runners.errors import ToolFailed
from runners.gateway.request import RunnerTarget
from runners.invocation.arguments import check_args, scope_of
from runners.invocation.fallback import falls_back
from runners.invocation.invoke import invoke, raise_if_interrupted
from runners.invocation.workspace_errors import failed_call
from runners.remote_tools.lookup import KIND, find_tool, goes_elsewhere
from runners.targets.runner_endpoint import find_runner, runner_of
from runners.targets.targets import Caller, choose_target
from runners.targets.workspaces import check_may_use, open_workspace
from runners.tools.base import Tool, ToolCall, ToolContext, ToolResult
from runners.tools.registry import get_tool
from runners.workspace.cancellation import run_to_completion
from runners.workspace.workspace import Workspace
from runs.direct_calls.as_run import hand_in, wait_for
from runs.direct_calls.audit import Admitted, about, deed, failed, opening, outcome_of, record_end
from runs.direct_calls.idempotency import Earlier, claim_key, find_earlier
from runs.direct_calls.refusals import refusals_told
from runs.direct_calls.request import Answered, AskedCall
from runs.events.types import EventType
from runs.lifecycle.in_flight_calls import (
    INTERRUPTED,
    CarriedCall,
    aborted_call_data,
    start_direct_call,
)
from runs.task_templates.large_outputs import fit_call_output


async def call_tool(*, principal: Principal, asked: AskedCall) -> Answered:
    """Call a tool and return what it answered.

    Raises:
        ToolNotFound: There is no tool of this name here, nor a runner that could have it.
        TargetNotFound: It names a target that is no runner of the caller's.
        Forbidden: The caller lacks the tool's scope.
        PolicyDenied, ConfirmationRequired, Conflict: As `deeds.admit_call` and `begin`; once a
            person confirmed, the same call with the same key is performed.
        Conflict: The key was used for another call, or its call is under way. One that was made
            under its key is not made again: this returns, or raises, what it came to.
        FailedCall: The tool failed, or its arguments or its target are wrong.
    """
    began = time.monotonic()
    admitted = await in_thread(_admit, principal, asked)
    if admitted.earlier is not None:
        return _answer(admitted.tool, admitted.earlier)
    if admitted.tool.uses_browser:
        return await _carried(principal, admitted, _limit_ms(admitted.tool, asked), began)
    outcome, done = aborted_call_data(INTERRUPTED, asked.name, about(admitted)), None
    try:
        context = _context(principal, admitted, asked)
        call = ToolCall(asked.name, admitted.use.args, admitted.use.target_id)
        result = await invoke(call, context)
        output, marks = await _fitted(admitted, result, context)
        outcome = outcome_of(admitted.tool, result)
        kept = [blob.artifact_id for blob in admitted.blobs]
        done = Earlier(
            admitted.call_id, replace(result, output=output), kept, {**marks, **asked.marks}
        )
    finally:
        outcome["durationMs"] = int((time.monotonic() - began) * 1000)
        # Also where whoever asked has hung up: what was begun is said to have ended.
        await asyncio.shield(in_thread(record_end, principal, admitted, outcome, done))
    raise_if_interrupted()
    if falls_back(result):
        return await _here_instead(principal, admitted, asked, result)
    return _answer(admitted.tool, done)


async def _here_instead(
    principal: Principal, admitted: Admitted, asked: AskedCall, result: ToolResult
) -> Answered:
    """Have our own tool do what its runner was not reached for: a call like any other, with its own
    place, policy and audit.
    """
    reason = (result.error or {})["details"]["reason"]
    told = {**about(admitted), "reason": reason}
    telling = deed("tool.fell_back", principal, admitted.tool, told)
    await in_thread(record, telling)
    here = replace(
        asked,
        target_id=None,
        stands_for=admitted.use,
        marks={"fellBackFrom": admitted.use.target_id},
    )
    return await call_tool(principal=principal, asked=here)


async def _fitted(
    admitted: Admitted, result: ToolResult, context: ToolContext
) -> tuple[Any, Mapping[str, Any]]:
    """Return what a call answered; of a runner as in a run: what is large is shortened, and whole
    in an artifact.
    """
    if admitted.tool.kind != KIND or not result.ok:
        return storable(result.output), {}
    return await fit_call_output(admitted.tool.name, result.output, context.save_artifact)


def _admit(principal: Principal, asked: AskedCall) -> Admitted:
    """Check a call and ask policy about it; commits that it begins, or that it was refused.

    A call that a worker carries begins with its run, in one transaction.
    """
    with refusals_told(principal=principal, name=asked.name):
        admitted = _checked(principal, asked)
        if admitted.tool.uses_browser:
            return admitted
        if admitted.is_keyed and (earlier := find_earlier(admitted.use)) is not None:
            return replace(admitted, earlier=earlier)
        approval = admit_call(admitted.use)
        with transaction.atomic():
            begin(approval)
            if admitted.is_keyed:
                claim_key(admitted.use, admitted.call_id, stands_for=asked.stands_for)
            start_direct_call(admitted.call_id, opening(principal, admitted))
    return admitted


def _checked(principal: Principal, asked: AskedCall) -> Admitted:
    tool = get_tool(asked.name)
    if tool is None or goes_elsewhere(Caller.of(principal), asked.name, asked.target_id):
        tool, asked = _on_runner(principal, asked)
    if tool.agent_only:
        raise ToolNotFound(f"There is no tool {asked.name[:64]!r}.")
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


def _for_tool(principal: Principal, tool: Tool, asked: AskedCall) -> Admitted:
    if tool.kind == KIND:
        caller = Caller.of(principal)
        runner = runner_of(find_runner(caller, asked.target_id), caller)
        use = use_of(principal, tool.name, asked.args, target_id=runner.target_id, key=asked.key)
        return Admitted(tool, use, runner, new_id("call_"))
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
    return Admitted(tool, use, workspace, new_id("call_"))


def _context(principal: Principal, admitted: Admitted, asked: AskedCall) -> ToolContext:
    async def save_artifact(data: bytes, *, name: str, mime_type: str, kind: str = "file") -> str:
        blob = await asyncio.to_thread(store_blob, data, name=name, mime_type=mime_type, kind=kind)
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


def _limit_ms(tool: Tool, asked: AskedCall) -> int:
    return min(tool.timeout_ms, asked.timeout_ms or tool.timeout_ms)


async def _carried(
    principal: Principal, admitted: Admitted, limit_ms: int, began: float
) -> Answered:
    call = CarriedCall(admitted.use, admitted.call_id, opening(principal, admitted))
    run_id = await run_to_completion(hand_in(principal, call, limit_ms))
    outcome = aborted_call_data(INTERRUPTED, admitted.tool.name, about(admitted))
    try:
        raise_if_interrupted()
        carried = await wait_for(principal, run_id, limit_ms)
        outcome = outcome_of(admitted.tool, carried.result)
    except Refused as refused:
        outcome = {"ok": False, "code": refused.code}
        raise
    finally:
        outcome |= {"runId": run_id, "durationMs": int((time.monotonic() - began) * 1000)}
        await asyncio.shield(in_thread(record_end, principal, admitted, outcome))
    if not carried.result.ok:
        raise failed(admitted.tool, carried.result)
    return Answered(carried.result.output or {}, admitted.call_id, run_id, carried.artifact_ids)


def _answer(tool: Tool, done: Earlier) -> Answered:
    if not done.result.ok:
        raise failed(tool, done.result)
    return Answered(
        done.result.output, done.call_id, artifact_ids=done.artifact_ids, marks=done.marks
    )
