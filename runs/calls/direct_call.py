"""A direct tool call: validate it, authorize it, perform it, and audit its start and end.

Tools that need no browser run here, in the process of the API. For a tool that needs a browser, a
worker performs the call as a run of `call_tools`, and this process waits for the run (`as_run`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from artifacts.services import store_blob
from decisions.audit.record import record
from decisions.authorization.authorize import tool_call_request
from decisions.foundation.errors import Conflict, InvalidInput, Refused, ToolNotFound
from decisions.foundation.infra.ids import new_id
from decisions.foundation.infra.threads import in_thread
from decisions.foundation.infra.trace_context import current_traceparent, traceparent_for
from decisions.foundation.validation.storable import storable
from decisions.identity.principals import Principal
from runners.errors import ToolFailed
from runners.gateway.request import RunnerTarget
from runners.invocation.arguments import check_args, scope_of
from runners.invocation.fallback import falls_back
from runners.invocation.invoke import invoke, raise_if_interrupted
from runners.invocation.workspace_errors import failed_call
from runners.remote_tools.lookup import KIND, find_tool, is_remote_call
from runners.targets.cache import is_unchanged, target_state
from runners.targets.runner_endpoint import find_runner
from runners.targets.targets import Caller, choose_target
from runners.targets.workspaces import find_target
from runners.tools.base import Tool, ToolCall, ToolContext, ToolResult
from runners.tools.registry import get_tool
from runners.workspace.cancellation import run_to_completion
from runners.workspace.workspace import ProjectWorkspace
from runs.calls.as_run import submit_call, wait_for_call
from runs.calls.direct_record import (
    AdmittedCall,
    audit_details,
    audit_event,
    audit_outcome,
    call_failure,
    record_end,
    started_event,
)
from runs.calls.direct_start import StartedCall, start_direct_call
from runs.calls.idempotency import StoredOutcome, claim_key, find_stored_outcome
from runs.calls.refusals import recording_refusals
from runs.calls.request import DirectCallRequest, DirectCallResult
from runs.calls.start import CHANGED_MEANWHILE, MAX_TRIES
from runs.calls.targets import open_call_target
from runs.events.types import EventType
from runs.lifecycle.in_flight_calls import (
    INTERRUPTED,
    DirectCallOfRun,
    aborted_call_data,
)
from runs.task_templates.large_outputs import fit_call_output


async def call_tool(*, principal: Principal, request: DirectCallRequest) -> DirectCallResult:
    """Call a tool and return its output.

    With an idempotency key, a call that was made before is not repeated: its stored outcome is
    returned or raised. Once a person has confirmed a call, the same call with the same key performs
    it.

    Raises:
        ToolNotFound: No tool has this name, and no runner could have it.
        TargetNotFound: The target is not a runner of the caller.
        Forbidden: The caller lacks the tool's scope.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
        Conflict: The key was used for another call, or its call is still running; or as
            `authorize.use_approval`.
        FailedCall: The tool failed, or its arguments or target are invalid.
    """
    started = time.monotonic()
    admitted = await in_thread(_admit, principal, request)
    if admitted.earlier_outcome is not None:
        return _result_of(admitted.tool, admitted.earlier_outcome)
    if admitted.tool.uses_browser:
        return await _call_as_run(principal, admitted, _limit_ms(admitted.tool, request), started)
    # If the call is interrupted, its end is audited as such, and no outcome is stored.
    audited, outcome = aborted_call_data(INTERRUPTED, request.name, audit_details(admitted)), None
    try:
        context = _context(principal, admitted, request)
        call = ToolCall(request.name, admitted.request.args, admitted.request.target_id)
        result = await invoke(call, context)
        output, marks = await _fitted_output(admitted, result, context)
        audited = audit_outcome(admitted.tool, result)
        outcome = StoredOutcome(
            admitted.call_id,
            replace(result, output=output),
            [blob.artifact_id for blob in admitted.blobs],
            {**marks, **request.marks},
        )
    finally:
        audited["durationMs"] = int((time.monotonic() - started) * 1000)
        await record_end(principal, admitted, audited, outcome)
    raise_if_interrupted()
    if falls_back(result):
        return await _call_local_tool(principal, admitted, request, result)
    return _result_of(admitted.tool, outcome)


async def _call_local_tool(
    principal: Principal, admitted: AdmittedCall, request: DirectCallRequest, result: ToolResult
) -> DirectCallResult:
    """Fall back from an unreachable runner to the local tool of the same name: a separate call,
    with its own workspace, authorization and audit events.
    """
    reason = (result.error or {})["details"]["reason"]
    details = {**audit_details(admitted), "reason": reason}
    event = audit_event("tool.fell_back", principal, admitted.tool, details)
    await in_thread(record, event)
    fallback = replace(
        request,
        target_id=None,
        fallback_for=admitted.request,
        marks={"fellBackFrom": admitted.request.target_id},
    )
    return await call_tool(principal=principal, request=fallback)


async def _fitted_output(
    admitted: AdmittedCall, result: ToolResult, context: ToolContext
) -> tuple[Any, Mapping[str, Any]]:
    """Return a call's output and its marks; a large output of a runner is shortened, and the whole
    stored as an artifact.
    """
    if admitted.tool.kind != KIND or not result.ok:
        return storable(result.output), {}
    return await fit_call_output(admitted.tool.name, result.output, context.save_artifact)


def _admit(principal: Principal, request: DirectCallRequest) -> AdmittedCall:
    """Validate and authorize a call; commits its start, or its refusal.

    The start of a call that a worker performs is committed with its run instead.
    """
    with recording_refusals(principal=principal, name=request.name):
        for _ in range(MAX_TRIES):
            admitted = _validated(principal, request)
            if admitted.tool.uses_browser:
                return admitted
            if admitted.is_keyed and (earlier := find_stored_outcome(admitted.request)) is not None:
                return replace(admitted, earlier_outcome=earlier)
            if (started := _start(principal, admitted, request)) is not None:
                return replace(admitted, confirmed_basis=started.confirmed_basis)
        raise Conflict(CHANGED_MEANWHILE)


def _start(
    principal: Principal, admitted: AdmittedCall, request: DirectCallRequest
) -> StartedCall | None:
    def claim() -> None:
        if admitted.is_keyed:
            claim_key(admitted.request, admitted.call_id, fallback_for=request.fallback_for)

    event = started_event(principal, admitted)
    unchanged = [] if admitted.target_row is None else [is_unchanged(admitted.target_row)]
    return start_direct_call(
        admitted.request, admitted.call_id, event, preconditions=unchanged, write_first=claim
    )


def _validated(principal: Principal, request: DirectCallRequest) -> AdmittedCall:
    tool = get_tool(request.name)
    if tool is None or is_remote_call(Caller.of(principal), request.name, request.target_id):
        tool, request = _on_runner(principal, request)
    if tool.agent_only:
        raise ToolNotFound(f"There is no tool {request.name[:64]!r}.")
    principal.require(scope_of(tool))
    try:
        return _for_tool(principal, tool, request)
    except ToolFailed as failed:
        raise failed_call(failed.as_dict(), in_s4=tool.kind == "workspace") from None


def _on_runner(principal: Principal, request: DirectCallRequest) -> tuple[Tool, DirectCallRequest]:
    """Return the runner's tool, and the request with that runner as its target."""
    target_id = request.target_id
    if target_id is None:
        default = choose_target(Caller.of(principal), KIND, None)
        target_id = default.id if default is not None else None
    tool = find_tool(request.name, target_id=target_id, remote=True)
    if tool is None:
        raise ToolNotFound(f"There is no tool {request.name[:64]!r}.")
    return tool, replace(request, target_id=target_id)


def _for_tool(principal: Principal, tool: Tool, request: DirectCallRequest) -> AdmittedCall:
    caller, is_builtin, row = Caller.of(principal), tool.kind != KIND, None
    if not is_builtin:
        row = find_runner(caller, request.target_id)
    elif tool.kind == "workspace":
        row = find_target(caller, request.target_id)
    elif request.target_id is not None:
        raise InvalidInput(f"targetId: {tool.name} takes no target; omit it.")
    target = None
    if row is not None:  # before the arguments: a target that cannot be used is the first error
        offered = tuple(request.offered) if request.offered is not None else None
        target = open_call_target(caller, row, tool.name, is_builtin=is_builtin, offered=offered)
    use = tool_call_request(
        principal,
        tool.name,
        check_args(tool, request.args) if is_builtin else request.args,
        target_id=None if row is None else row.id,
        key=request.key,
        is_builtin=is_builtin,
        target_state="" if row is None else target_state(row),
    )
    return AdmittedCall(tool, use, target, new_id("call_"), target_row=row)


def _context(
    principal: Principal, admitted: AdmittedCall, request: DirectCallRequest
) -> ToolContext:
    async def save_artifact(data: bytes, *, name: str, mime_type: str, kind: str = "file") -> str:
        blob = await asyncio.to_thread(store_blob, data, name=name, mime_type=mime_type, kind=kind)
        admitted.blobs.append(blob)
        return blob.artifact_id

    target = admitted.target
    return ToolContext(
        run_id=admitted.call_id,
        trust=principal.trust,
        deadline=time.monotonic() + _limit_ms(admitted.tool, request) / 1000,
        save_artifact=save_artifact,
        emit=partial(_send_update, request),
        workspace=target if isinstance(target, ProjectWorkspace) else None,
        runner=target if isinstance(target, RunnerTarget) else None,
        session_id=new_id("sess_"),
        traceparent=current_traceparent() or traceparent_for(admitted.call_id),
        confirmed_basis=admitted.confirmed_basis,
    )


def _send_update(request: DirectCallRequest, type_: str, data: Mapping[str, Any]) -> None:
    """Send a runner's updates to the caller; other events are dropped: there is no run log."""
    if request.on_update is not None and type_ == EventType.TOOL_UPDATE:
        request.on_update(str(data["delta"]))


def _limit_ms(tool: Tool, request: DirectCallRequest) -> int:
    return min(tool.timeout_ms, request.timeout_ms or tool.timeout_ms)


async def _call_as_run(
    principal: Principal, admitted: AdmittedCall, limit_ms: int, started: float
) -> DirectCallResult:
    """Submit the call as a run, wait for it, and audit the call's end."""
    call = DirectCallOfRun(admitted.request, admitted.call_id, started_event(principal, admitted))
    run_id = await run_to_completion(submit_call(principal, call, limit_ms))
    audited = aborted_call_data(INTERRUPTED, admitted.tool.name, audit_details(admitted))
    try:
        raise_if_interrupted()
        ended = await wait_for_call(principal, run_id, limit_ms)
        audited = audit_outcome(admitted.tool, ended.result)
    except Refused as refused:
        audited = {"ok": False, "code": refused.code}
        raise
    finally:
        audited |= {"runId": run_id, "durationMs": int((time.monotonic() - started) * 1000)}
        await record_end(principal, admitted, audited)
    if not ended.result.ok:
        raise call_failure(admitted.tool, ended.result)
    return DirectCallResult(ended.result.output or {}, admitted.call_id, run_id, ended.artifact_ids)


def _result_of(tool: Tool, outcome: StoredOutcome) -> DirectCallResult:
    if not outcome.result.ok:
        raise call_failure(tool, outcome.result)
    return DirectCallResult(
        outcome.result.output,
        outcome.call_id,
        artifact_ids=outcome.artifact_ids,
        marks=outcome.marks,
    )
