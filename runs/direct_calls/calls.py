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
from decisions.authorization.authorize import admit_call, tool_call_request, use_approval
from decisions.errors import InvalidInput, Refused, ToolNotFound
from decisions.identity.principals import Principal
from decisions.infra.ids import new_id
from decisions.infra.threads import in_thread
from decisions.infra.trace_context import current_traceparent, traceparent_for
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
from runs.direct_calls.as_run import submit_call, wait_for_call
from runs.direct_calls.audit import (
    AdmittedCall,
    audit_details,
    audit_event,
    audit_outcome,
    call_failure,
    record_end,
    started_event,
)
from runs.direct_calls.idempotency import StoredOutcome, claim_key, find_stored_outcome
from runs.direct_calls.refusals import recording_refusals
from runs.direct_calls.request import DirectCallRequest, DirectCallResult
from runs.events.types import EventType
from runs.lifecycle.in_flight_calls import (
    INTERRUPTED,
    DirectCallOfRun,
    aborted_call_data,
    start_direct_call,
)
from runs.task_templates.large_outputs import fit_call_output


async def call_tool(*, principal: Principal, request: DirectCallRequest) -> DirectCallResult:
    """Call a tool and return what it answered.

    Raises:
        ToolNotFound: There is no tool of this name here, nor a runner that could have it.
        TargetNotFound: It names a target that is no runner of the caller's.
        Forbidden: The caller lacks the tool's scope.
        PolicyDenied, ConfirmationRequired, Conflict: As `authorize.admit_call` and `use_approval`; once a
            person confirmed, the same call with the same key is performed.
        Conflict: The key was used for another call, or its call is under way. One that was made
            under its key is not made again: this returns, or raises, what it came to.
        FailedCall: The tool failed, or its arguments or its target are wrong.
    """
    began = time.monotonic()
    admitted = await in_thread(_admit, principal, request)
    if admitted.earlier is not None:
        return _answer(admitted.tool, admitted.earlier)
    if admitted.tool.uses_browser:
        return await _carried(principal, admitted, _limit_ms(admitted.tool, request), began)
    outcome, done = aborted_call_data(INTERRUPTED, request.name, audit_details(admitted)), None
    try:
        context = _context(principal, admitted, request)
        call = ToolCall(request.name, admitted.use.args, admitted.use.target_id)
        result = await invoke(call, context)
        output, marks = await _fitted(admitted, result, context)
        outcome = audit_outcome(admitted.tool, result)
        kept = [blob.artifact_id for blob in admitted.blobs]
        done = StoredOutcome(
            admitted.call_id, replace(result, output=output), kept, {**marks, **request.marks}
        )
    finally:
        outcome["durationMs"] = int((time.monotonic() - began) * 1000)
        # Also where whoever asked has hung up: what was begun is said to have ended.
        await asyncio.shield(in_thread(record_end, principal, admitted, outcome, done))
    raise_if_interrupted()
    if falls_back(result):
        return await _here_instead(principal, admitted, request, result)
    return _answer(admitted.tool, done)


async def _here_instead(
    principal: Principal, admitted: AdmittedCall, request: DirectCallRequest, result: ToolResult
) -> DirectCallResult:
    """Have our own tool do what its runner was not reached for: a call like any other, with its own
    place, policy and audit.
    """
    reason = (result.error or {})["details"]["reason"]
    told = {**audit_details(admitted), "reason": reason}
    telling = audit_event("tool.fell_back", principal, admitted.tool, told)
    await in_thread(record, telling)
    here = replace(
        request,
        target_id=None,
        stands_for=admitted.use,
        marks={"fellBackFrom": admitted.use.target_id},
    )
    return await call_tool(principal=principal, request=here)


async def _fitted(
    admitted: AdmittedCall, result: ToolResult, context: ToolContext
) -> tuple[Any, Mapping[str, Any]]:
    """Return what a call answered; of a runner as in a run: what is large is shortened, and whole
    in an artifact.
    """
    if admitted.tool.kind != KIND or not result.ok:
        return storable(result.output), {}
    return await fit_call_output(admitted.tool.name, result.output, context.save_artifact)


def _admit(principal: Principal, request: DirectCallRequest) -> AdmittedCall:
    """Check a call and ask policy about it; commits that it begins, or that it was refused.

    A call that a worker carries begins with its run, in one transaction.
    """
    with recording_refusals(principal=principal, name=request.name):
        admitted = _checked(principal, request)
        if admitted.tool.uses_browser:
            return admitted
        if admitted.is_keyed and (earlier := find_stored_outcome(admitted.use)) is not None:
            return replace(admitted, earlier=earlier)
        approval = admit_call(admitted.use)
        with transaction.atomic():
            use_approval(approval)
            if admitted.is_keyed:
                claim_key(admitted.use, admitted.call_id, stands_for=request.stands_for)
            start_direct_call(admitted.call_id, started_event(principal, admitted))
    return admitted


def _checked(principal: Principal, request: DirectCallRequest) -> AdmittedCall:
    tool = get_tool(request.name)
    if tool is None or goes_elsewhere(Caller.of(principal), request.name, request.target_id):
        tool, request = _on_runner(principal, request)
    if tool.agent_only:
        raise ToolNotFound(f"There is no tool {request.name[:64]!r}.")
    principal.require(scope_of(tool))
    try:
        return _for_tool(principal, tool, request)
    except ToolFailed as failed:
        raise failed_call(failed.as_dict(), in_s4=tool.kind == "workspace") from None


def _on_runner(principal: Principal, request: DirectCallRequest) -> tuple[Tool, DirectCallRequest]:
    """Return the tool of a runner, and the call with that runner as its target."""
    target_id = request.target_id
    if target_id is None:
        default = choose_target(Caller.of(principal), KIND, None)
        target_id = default.id if default is not None else None
    tool = find_tool(request.name, target_id=target_id, remote=True)
    if tool is None:
        raise ToolNotFound(f"There is no tool {request.name[:64]!r}.")
    return tool, replace(request, target_id=target_id)


def _for_tool(principal: Principal, tool: Tool, request: DirectCallRequest) -> AdmittedCall:
    if tool.kind == KIND:
        caller = Caller.of(principal)
        runner = runner_of(find_runner(caller, request.target_id), caller)
        use = tool_call_request(
            principal, tool.name, request.args, target_id=runner.target_id, key=request.key
        )
        return AdmittedCall(tool, use, runner, new_id("call_"))
    workspace = None
    if tool.kind == "workspace":  # first: what is not to be had here has no wrong arguments
        offered = tuple(request.offered) if request.offered is not None else None
        caller = Caller.of(principal)
        workspace = open_workspace(caller, request.target_id, offered=offered, tool=tool.name)
        check_may_use(tool, workspace, trust=principal.trust)
    elif request.target_id is not None:
        raise InvalidInput(f"targetId: {tool.name} runs on no target that can be named.")
    args = check_args(tool, request.args)
    target_id = workspace.target_id if workspace is not None else None
    use = tool_call_request(
        principal, tool.name, args, target_id=target_id, key=request.key, is_builtin=True
    )
    return AdmittedCall(tool, use, workspace, new_id("call_"))


def _context(
    principal: Principal, admitted: AdmittedCall, request: DirectCallRequest
) -> ToolContext:
    async def save_artifact(data: bytes, *, name: str, mime_type: str, kind: str = "file") -> str:
        blob = await asyncio.to_thread(store_blob, data, name=name, mime_type=mime_type, kind=kind)
        admitted.blobs.append(blob)
        return blob.artifact_id

    place = admitted.place
    return ToolContext(
        run_id=admitted.call_id,
        trust=principal.trust,
        deadline=time.monotonic() + _limit_ms(admitted.tool, request) / 1000,
        save_artifact=save_artifact,
        emit=partial(_tell, request),
        workspace=place if isinstance(place, Workspace) else None,
        runner=place if isinstance(place, RunnerTarget) else None,
        session_id=new_id("sess_"),
        traceparent=current_traceparent() or traceparent_for(admitted.call_id),
    )


def _tell(request: DirectCallRequest, type_: str, data: Mapping[str, Any]) -> None:
    """Pass on what a runner's tool says as it works; a call that has no run has no log."""
    if request.on_update is not None and type_ == EventType.TOOL_UPDATE:
        request.on_update(str(data["delta"]))


def _limit_ms(tool: Tool, request: DirectCallRequest) -> int:
    return min(tool.timeout_ms, request.timeout_ms or tool.timeout_ms)


async def _carried(
    principal: Principal, admitted: AdmittedCall, limit_ms: int, began: float
) -> DirectCallResult:
    call = DirectCallOfRun(admitted.use, admitted.call_id, started_event(principal, admitted))
    run_id = await run_to_completion(submit_call(principal, call, limit_ms))
    outcome = aborted_call_data(INTERRUPTED, admitted.tool.name, audit_details(admitted))
    try:
        raise_if_interrupted()
        carried = await wait_for_call(principal, run_id, limit_ms)
        outcome = audit_outcome(admitted.tool, carried.result)
    except Refused as refused:
        outcome = {"ok": False, "code": refused.code}
        raise
    finally:
        outcome |= {"runId": run_id, "durationMs": int((time.monotonic() - began) * 1000)}
        await asyncio.shield(in_thread(record_end, principal, admitted, outcome))
    if not carried.result.ok:
        raise call_failure(admitted.tool, carried.result)
    return DirectCallResult(
        carried.result.output or {}, admitted.call_id, run_id, carried.artifact_ids
    )


def _answer(tool: Tool, done: StoredOutcome) -> DirectCallResult:
    if not done.result.ok:
        raise call_failure(tool, done.result)
    return DirectCallResult(
        done.result.output, done.call_id, artifact_ids=done.artifact_ids, marks=done.marks
    )
