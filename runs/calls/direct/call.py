"""Make a direct tool call: validate it, authorize it, start it, perform it, and record its end.

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

from django.db import transaction

from artifacts.services import store_blob
from decisions.audit.record import record
from decisions.authorization.authorize import (
    admit_call,
    confirmed_basis,
    tool_call_request,
    use_approval,
)
from decisions.authorization.policy import cached_policy
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
from runs.calls.direct.as_run import submit_call, wait_for_call
from runs.calls.direct.idempotency import StoredOutcome, claim_key, find_stored_outcome
from runs.calls.direct.refusals import recording_refusals
from runs.calls.record import DirectCall, record_end
from runs.calls.request import DirectCallRequest, DirectCallResult
from runs.calls.start import CHANGED_MEANWHILE, MAX_TRIES, start_call
from runs.calls.target import open_call_target
from runs.events.types import EventType
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
    call, outcome = await in_thread(_admit, principal, request)
    if outcome is not None:
        return _result_of(call, outcome)
    if call.tool.uses_browser:
        return await _call_as_run(call, started)
    audited = None  # if the call is interrupted; then no outcome is stored either
    try:
        context = _context(call, request)
        tool_call = ToolCall(request.name, call.request.args, call.request.target_id)
        result = await invoke(tool_call, context)
        output, marks = await _fitted_output(call, result, context)
        audited = call.outcome_of(result)
        outcome = StoredOutcome(
            call.call_id,
            replace(result, output=output),
            [blob.artifact_id for blob in call.blobs],
            {**marks, **request.marks},
        )
    finally:
        await record_end(call, started, audited, outcome)
    raise_if_interrupted()
    if falls_back(result):
        return await _call_local_tool(call, request, result)
    return _result_of(call, outcome)


# --- request, target, policy, start ---------------------------------------------------------------


def _admit(
    principal: Principal, request: DirectCallRequest
) -> tuple[DirectCall, StoredOutcome | None]:
    """Validate and authorize a call, and return it; commits its start, or its refusal.

    With the outcome of an earlier call with the same key, it is not made. The start of a call that
    a worker performs is committed with its run instead.
    """
    with recording_refusals(principal=principal, name=request.name):
        for _ in range(MAX_TRIES):
            call = _validated(principal, request)
            if call.tool.uses_browser:
                return call, None
            if call.is_keyed and (earlier := find_stored_outcome(call.request)) is not None:
                return call, earlier
            if _start(call, request):
                return call, None
        raise Conflict(CHANGED_MEANWHILE)


def _validated(principal: Principal, request: DirectCallRequest) -> DirectCall:
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


def _for_tool(principal: Principal, tool: Tool, request: DirectCallRequest) -> DirectCall:
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
    limit_ms = min(tool.timeout_ms, request.timeout_ms or tool.timeout_ms)
    return DirectCall(principal, tool, use, limit_ms, target, row)


def _start(call: DirectCall, request: DirectCallRequest) -> bool:
    """Authorize a call and record its start. Commits.

    False where the policy rules or the target changed meanwhile: then nothing was written, and the
    caller reads its target again.

    Raises:
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
        Conflict: As `authorize.use_approval`, or a concurrent call has the key.
    """
    # Read before the authorization, which reads the rules again if this process has older ones.
    preconditions = [cached_policy(call.request).precondition]
    if call.target_row is not None:
        preconditions.append(is_unchanged(call.target_row))
    approval = admit_call(call.request)
    call.confirmed_basis = confirmed_basis(approval)
    with transaction.atomic():
        use_approval(approval)
        if call.is_keyed:
            claim_key(call.request, call.call_id, fallback_for=request.fallback_for)
        is_started = start_call(
            call.call_id, call.event("tool.called"), preconditions=preconditions
        )
        if not is_started:
            transaction.set_rollback(True)
    return is_started


# --- invoke ---------------------------------------------------------------------------------------


def _context(call: DirectCall, request: DirectCallRequest) -> ToolContext:
    async def save_artifact(data: bytes, *, name: str, mime_type: str, kind: str = "file") -> str:
        blob = await asyncio.to_thread(store_blob, data, name=name, mime_type=mime_type, kind=kind)
        call.blobs.append(blob)
        return blob.artifact_id

    target = call.target
    return ToolContext(
        run_id=call.call_id,
        trust=call.principal.trust,
        deadline=time.monotonic() + call.limit_ms / 1000,
        save_artifact=save_artifact,
        emit=partial(_send_update, request),
        workspace=target if isinstance(target, ProjectWorkspace) else None,
        runner=target if isinstance(target, RunnerTarget) else None,
        session_id=new_id("sess_"),
        traceparent=current_traceparent() or traceparent_for(call.call_id),
        confirmed_basis=call.confirmed_basis,
    )


def _send_update(request: DirectCallRequest, type_: str, data: Mapping[str, Any]) -> None:
    """Send a runner's updates to the caller; other events are dropped: there is no run log."""
    if request.on_update is not None and type_ == EventType.TOOL_UPDATE:
        request.on_update(str(data["delta"]))


async def _fitted_output(
    call: DirectCall, result: ToolResult, context: ToolContext
) -> tuple[Any, Mapping[str, Any]]:
    """Return a call's output and its marks; a large output of a runner is shortened, and the whole
    stored as an artifact.
    """
    if call.tool.kind != KIND or not result.ok:
        return storable(result.output), {}
    return await fit_call_output(call.tool.name, result.output, context.save_artifact)


async def _call_local_tool(
    call: DirectCall, request: DirectCallRequest, result: ToolResult
) -> DirectCallResult:
    """Fall back from an unreachable runner to the local tool of the same name: a separate call,
    with its own workspace, authorization and audit events.
    """
    reason = (result.error or {})["details"]["reason"]
    await in_thread(record, call.event("tool.fell_back", reason=reason))
    fallback = replace(
        request,
        target_id=None,
        fallback_for=call.request,
        marks={"fellBackFrom": call.request.target_id},
    )
    return await call_tool(principal=call.principal, request=fallback)


async def _call_as_run(call: DirectCall, started: float) -> DirectCallResult:
    """Submit the call as a run, wait for it, and record the call's end."""
    run_id = await run_to_completion(in_thread(submit_call, call))
    audited = None
    try:
        raise_if_interrupted()
        result, artifact_ids = await wait_for_call(call, run_id)
        audited = call.outcome_of(result)
    except Refused as refused:
        audited = {"ok": False, "code": refused.code}
        raise
    finally:
        await record_end(call, started, audited, runId=run_id)
    if not result.ok:
        raise call.failure(result)
    return DirectCallResult(result.output or {}, call.call_id, run_id, artifact_ids)


# --- answer ---------------------------------------------------------------------------------------


def _result_of(call: DirectCall, outcome: StoredOutcome) -> DirectCallResult:
    if not outcome.result.ok:
        raise call.failure(outcome.result)
    return DirectCallResult(
        outcome.result.output,
        outcome.call_id,
        artifact_ids=outcome.artifact_ids,
        marks=outcome.marks,
    )
