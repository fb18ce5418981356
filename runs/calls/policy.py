"""Authorize a step's tool call: policy decision, required confirmation, and whether a person has
taken over the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from decisions.audit.record import AuditEvent, record
from decisions.authorization import authorize, confirmations
from decisions.authorization.authorize import Authorization, ToolCallRequest
from decisions.authorization.policy import cached_policy
from decisions.foundation.errors import PolicyDenied, Refused, TargetNotFound
from decisions.foundation.security.masking import Masker
from runners.actions.judged import covered_tools
from runners.errors import PageLost, ToolFailed
from runners.invocation.step_call import StepCall
from runners.models import ExecutionTarget
from runners.paired_browser.choice import is_paired_browser
from runners.targets.cache import target_state
from runners.targets.runner_endpoint import find_runner
from runners.targets.targets import Caller
from runners.targets.workspaces import find_target
from runners.tools.registry import get_tool
from runners.trust import TrustLevel
from runs.calls.browser_policy import PairedBrowserTarget, allow_origin, find_browser, state_of
from runs.models import APPROVED, Run, Task

FoundTarget = ExecutionTarget | PairedBrowserTarget | ToolFailed | Refused | None


def request_of_step(
    run: Run,
    *,
    index: int,
    call: StepCall,
    masker: Masker,
    number: int = 0,
    may_have_confirmation: bool = False,
) -> ToolCallRequest:
    """Return the request for a step's call, the `number`th of the step, as policy judges it.

    A person who decides on it sees the exact arguments: no secret is placed in them by value, a
    tool gets one by its name (`fill_field`). Records have masks, also where a value equals one.
    """
    is_builtin = call.remote is None and get_tool(call.tool) is not None
    covers = covered_tools(call.tool, call.args, None) if is_builtin else frozenset()
    return ToolCallRequest(
        principal_id=run.principal_id,
        tenant_id=run.tenant_id,
        workspace_id=run.workspace_id,
        user_id=run.user_id,
        trust=trust_of(run),
        tool=call.tool,
        args=call.args,
        target_id=call.target_id,
        run_id=run.id,
        step_index=index,
        number=number,
        may_have_confirmation=may_have_confirmation,
        display_args=masker.value(call.args),
        is_builtin=is_builtin,
        covers=covers,
    )


def replayed_call(
    request: ToolCallRequest, replay: Sequence[Mapping[str, Any]] | None
) -> dict[str, Any] | None:
    """Return the outcome of this call from before the step was suspended; None where it was not
    made then.

    Raises:
        ToolFailed: The step makes another call than before. Nothing is repeated, and the approval
            was given for the other call.
    """
    if replay is None or request.number >= len(replay):
        return None
    call = dict(replay[request.number])
    if call["tool"] != request.tool or call["digest"] not in request.digests:
        raise ToolFailed(
            f"The resumed step calls {request.tool} where it had called {call['tool']} before.",
            details={"causeCode": "STEP_CHANGED", "effect": "unknown"},
        )
    return call


def authorize_cached(request: ToolCallRequest) -> Authorization | None:
    """Return the authorization of a call that the cached policy allows, without a query; None for
    any other decision, or where a person may have been asked about the call.
    """
    if request.may_have_confirmation:
        return None
    if is_paired_browser(request.target_id):
        return None
    policy = cached_policy(
        principal_id=request.principal_id,
        tenant_id=request.tenant_id,
        workspace_id=request.workspace_id,
    )
    verdict = policy.evaluate(
        request.tool,
        request.target_id,
        is_builtin=request.is_builtin,
        covers=request.covers,
    )
    if verdict.decision != "allow":
        return None
    return Authorization(verdict, "allow", precondition=policy.precondition)


def authorize_call(
    run: Run, request: ToolCallRequest, found: FoundTarget
) -> Authorization | Refused | None:
    """Return the authorization of a step's call on the target found for it; on the run's database
    thread.

    Refused: the call is denied, or the runner that it names does not exist. None: a person has
    taken over the page of the run's task, and no call is made until the takeover ends. Marks an
    approval as used.
    """
    if is_taken_over(run):
        return None
    if (refused := _runner_refusal(run, request, found)) is not None:
        return refused
    if isinstance(found, ExecutionTarget):
        request = replace(request, target_state=target_state(found))
    if isinstance(found, PairedBrowserTarget):
        request = replace(request, target_state=state_of(found))
    approved = run.options.get(APPROVED)  # the approval of the direct call that the run makes
    authorization = authorize.authorize(request)
    is_new = authorization.decision == "confirm" and authorization.confirmation is None
    if is_new and approved is not None:
        # It was given before the run had a page: for the arguments, not for an element.
        digests = replace(request, basis="").subject_digests
        is_approved = confirmations.was_approved(
            approved, digests=digests, principal_id=request.principal_id
        )
        return replace(authorization, decision="allow") if is_approved else authorization
    if authorization.decision == "deny":
        authorize.record_denial(request, authorization)
        return authorize.denial(request, authorization)
    if authorization.decision == "allow" and authorization.confirmation is not None:
        # It may be used already, by a worker that was lost; the step's effect decides repetition.
        confirmations.mark_used(authorization.confirmation)
        allow_origin(run, request, authorization.confirmation)
    return authorization


def is_taken_over(run: Run) -> bool:
    """Return whether a person has taken over the page of the run's task."""
    return run.task_id is not None and Task.objects.is_taken_over(run.task_id)


def find_call_target(run: Run, request: ToolCallRequest) -> FoundTarget:
    """Return the target of a step's call; None where it needs none, and an error where there is
    none.
    """
    if not needs_target(request):
        return None
    if request.is_builtin and is_paired_browser(request.target_id):
        return _paired_browser(run, request.target_id or "")
    find = find_target if request.is_builtin else find_runner
    try:
        return find(caller_of(run), request.target_id)
    except (PolicyDenied, TargetNotFound, ToolFailed) as failed:
        return failed


def needs_target(request: ToolCallRequest) -> bool:
    """Return whether a call works in a folder, on a runner or in a paired browser."""
    tool = get_tool(request.tool) if request.is_builtin else None
    return tool is None or tool.kind == "workspace" or is_paired_browser(request.target_id)


def _paired_browser(run: Run, client_id: str) -> PairedBrowserTarget | Refused:
    try:
        return find_browser(run, caller_of(run), client_id)
    except TargetNotFound as missing:
        return missing


def _runner_refusal(run: Run, request: ToolCallRequest, found: FoundTarget) -> Refused | None:
    """Return why the runner or browser that a call names cannot perform it; record a denial."""
    is_elsewhere = not request.is_builtin or is_paired_browser(request.target_id)
    if not is_elsewhere or request.target_id is None or not isinstance(found, Refused):
        return None
    if isinstance(found, PolicyDenied):
        record_refusal(run, request, found)
    return found


def page_lost_error(request: ToolCallRequest) -> PageLost:
    """Return the error of a call that a person was asked to confirm on a page that was lost."""
    return PageLost(
        "The page was lost while the run waited for a person; the call was not made.",
        details={"causeCode": "PAGE_CRASHED", "effect": "none", "step": request.step_index},
        recovery="Open the page again, then decide anew on the call: it had no effect.",
    )


def record_fallback(run: Run, request: ToolCallRequest, reason: str) -> None:
    """Record that a call which did not reach its runner is made by the local tool; commits."""
    data = {
        "tool": request.tool[:128],
        "step": request.step_index,
        "targetId": request.target_id,
        "reason": reason,
    }
    scope = run.tenant_id, run.workspace_id
    record(AuditEvent("tool.fell_back", run.principal_id, "run", run.id, *scope, data))


def caller_of(run: Run) -> Caller:
    """Return the caller in whose name a run makes its calls."""
    return Caller(run.principal_id, run.tenant_id, run.workspace_id, trust_of(run))


def trust_of(run: Run) -> TrustLevel:
    """Return the trust level of a run's caller."""
    return "local" if run.trust == "local" else "remote"


def record_refusal(run: Run, request: ToolCallRequest, denied: PolicyDenied) -> None:
    """Record that a call was denied its target; commits."""
    data: dict[str, Any] = {"tool": request.tool[:128], "step": request.step_index}
    data["rule"] = denied.message[:200]
    data["argsDigest"] = request.digest
    if request.target_id:
        data["targetId"] = request.target_id
    scope = run.tenant_id, run.workspace_id
    record(AuditEvent("policy.denied", run.principal_id, "run", run.id, *scope, data))
