"""What becomes of a step's call before it is made: policy, people, whoever has the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from decisions.audit.record import AuditEvent, record
from decisions.authorization import authorize, confirmations
from decisions.authorization.authorize import Authorization, ToolCallRequest
from decisions.errors import PolicyDenied, Refused, TargetNotFound
from decisions.security.masking import Masker
from runners.errors import PageLost, ToolFailed
from runners.gateway.request import RunnerTarget
from runners.invocation.step_call import StepCall
from runners.targets.runner_endpoint import find_runner
from runners.targets.targets import Caller
from runners.tools.registry import get_tool
from runners.trust import TrustLevel
from runners.workspace.workspace import Workspace
from runs.models import APPROVED, Run, Task

Place = Workspace | RunnerTarget


def tool_use_of_step(
    run: Run,
    *,
    index: int,
    call: StepCall,
    masker: Masker,
    number: int = 0,
    may_have_confirmation: bool = False,
) -> ToolCallRequest:
    """Return a call of a step as policy sees it: its `number`th."""
    is_builtin = call.remote is None and get_tool(call.tool) is not None
    return ToolCallRequest(
        principal_id=run.principal_id,
        tenant_id=run.tenant_id,
        workspace_id=run.workspace_id,
        user_id=run.user_id,
        tool=call.tool,
        args=call.args,
        target_id=call.target_id,
        run_id=run.id,
        step_index=index,
        number=number,
        may_have_confirmation=may_have_confirmation,
        display_args=masker.value(call.args),
        is_builtin=is_builtin,
    )


def replayed_call(
    use: ToolCallRequest, replay: Sequence[Mapping[str, Any]] | None
) -> dict[str, Any] | None:
    """Return what this call answered before the step stopped for a person, if it was made.

    Raises:
        ToolFailed: The step takes another way than before: what was done is not done again, and
            what was approved was approved of the other way.
    """
    if replay is None or use.number >= len(replay):
        return None
    call = dict(replay[use.number])
    if call["tool"] != use.tool or call["digest"] not in use.digests:
        raise ToolFailed(
            f"After the wait the step calls {use.tool} where it had called {call['tool']}.",
            details={"causeCode": "STEP_CHANGED", "effect": "unknown"},
        )
    return call


def authorize_call(run: Run, use: ToolCallRequest) -> Authorization | Refused | None:
    """Return what becomes of a step's call, on the run's database thread; an approval is used up
    here. Refused: it is denied, or the runner that it names is not there; nobody is asked about
    such a one. None: a person has the page of the run's task, and nothing is called meanwhile.
    """
    if run.task_id is not None and Task.objects.is_taken_over(run.task_id):
        return None
    if (refused := _without_runner(run, use)) is not None:
        return refused
    approved = run.options.get(APPROVED)  # the direct call that the run carries: a person let it
    ruling = authorize.authorize(use)
    if ruling.decision == "confirm" and ruling.confirmation is None and approved is not None:
        may = confirmations.was_approved(
            approved, digests=use.digests, principal_id=use.principal_id
        )
        return Authorization(ruling.verdict, "allow") if may else ruling
    if ruling.decision == "deny":
        authorize.record_denial(use, ruling)
        return authorize.denial(use, ruling)
    if ruling.decision == "allow" and ruling.confirmation is not None:
        # False where a former worker had begun: whether the step may be done again is its effect's.
        confirmations.mark_used(ruling.confirmation)
    return ruling


def _without_runner(run: Run, use: ToolCallRequest) -> Refused | None:
    """Return why the runner that a call names cannot perform it; a denial is told as one."""
    if use.is_builtin or use.target_id is None:
        return None
    try:
        find_runner(caller_of(run), use.target_id)
    except PolicyDenied as denied:
        record_refusal(run, use, denied)
        return denied
    except TargetNotFound as missing:
        return missing
    return None


def page_lost_error(use: ToolCallRequest) -> PageLost:
    """Return the failure of a call about which a person was asked on a page that is gone (runs.md,
    "Concurrency").
    """
    return PageLost(
        "The page was lost while the run waited for a person; nothing was done on it since.",
        details={"causeCode": "PAGE_CRASHED", "effect": "none", "step": use.step_index},
    )


def record_fallback(run: Run, use: ToolCallRequest, reason: str) -> None:
    """Tell that a call which did not reach its runner is made here instead; commits."""
    told = {
        "tool": use.tool[:128],
        "step": use.step_index,
        "targetId": use.target_id,
        "reason": reason,
    }
    place = run.tenant_id, run.workspace_id
    record(AuditEvent("tool.fell_back", run.principal_id, "run", run.id, *place, told))


def caller_of(run: Run) -> Caller:
    """Return whose calls those of a run are."""
    return Caller(run.principal_id, run.tenant_id, run.workspace_id, trust_of(run))


def trust_of(run: Run) -> TrustLevel:
    """Return the trust level of a run's caller."""
    return "local" if run.trust == "local" else "remote"


def record_refusal(run: Run, use: ToolCallRequest, denied: PolicyDenied) -> None:
    """Tell that a call's target is not to be used; commits."""
    told = {"tool": use.tool[:128], "step": use.step_index, "rule": denied.message[:200]}
    told |= {"argsDigest": use.digest, **({"targetId": use.target_id} if use.target_id else {})}
    place = run.tenant_id, run.workspace_id
    record(AuditEvent("policy.denied", run.principal_id, "run", run.id, *place, told))
