"""What becomes of a step's call before it is made: policy, people, whoever has the page; and the
place that it works in, a folder or a runner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

from decisions import confirmations, deeds
from decisions.audit import Deed, record
from decisions.deeds import Ruling, ToolUse
from decisions.errors import PolicyDenied, Refused, TargetNotFound
from decisions.policy import Verdict, policy_by_heart
from decisions.still_so import StillSo
from runners.errors import PageLost, ToolFailed
from runners.gateway.wanted import RunnerTarget
from runners.known_targets import is_unchanged, keep_by_heart, target_by_heart
from runners.models import ExecutionTarget, TargetKind
from runners.registry import get_tool
from runners.remote import find_runner, runner_of
from runners.targets import Caller
from runners.trust import TrustLevel
from runners.workspace.place import Workspace
from runners.workspaces import check_may_use, find_target, open_target
from runs.claims import LeaseLost
from runs.made_calls import MadeCall, begun
from runs.models import APPROVED, DEVELOPER_TARGET, Run, Task, TaskStatus
from runs.open_calls import open_call_of_run
from runs.prepared import holds

Place = Workspace | RunnerTarget


class CallFailed(Exception):
    """A tool call that failed or was denied; `error` has the one shape of every door."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message", "")))
        self.error = error


class NeedsPerson(Exception):
    """A tool call that a person has to confirm first; nothing of it was done."""

    def __init__(self, use: ToolUse, ruling: Ruling) -> None:
        super().__init__(use.tool)
        self.use, self.ruling = use, ruling


class TakenOver(NeedsPerson):
    """A tool call that waits until a person gives back the page; nothing of it was done."""

    def __init__(self, use: ToolUse) -> None:
        super().__init__(use, Ruling(Verdict("confirm", "takeover"), "confirm"))


class NeedsAnswer(Exception):
    """A question that whoever handed the run in has to answer before the step goes on."""

    def __init__(self, question: str, suggestions: Sequence[str] = ()) -> None:
        super().__init__(question)
        self.question, self.suggestions = question, suggestions


def remembered(use: ToolUse, replay: Sequence[Mapping[str, Any]] | None) -> dict[str, Any] | None:
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


def rule_on_call(run: Run, use: ToolUse) -> Ruling | Refused | None:
    """Return what becomes of a step's call, on the run's database thread; an approval is used up
    here. Refused: it is denied, or the runner that it names is not there; nobody is asked about
    such a one. None: a person has the page of the run's task, and nothing is called meanwhile.
    """
    if run.task_id is not None and is_taken_over(run.task_id):
        return None
    if (refused := _without_runner(run, use)) is not None:
        return refused
    approved = run.options.get(APPROVED)  # the direct call that the run carries: a person let it
    ruling = deeds.rule_on(use)
    if ruling.decision == "confirm" and ruling.standing is None and approved is not None:
        may = confirmations.was_approved(
            approved, digests=use.digests, principal_id=use.principal_id
        )
        return Ruling(ruling.verdict, "allow") if may else ruling
    if ruling.decision == "deny":
        deeds.record_denial(use, ruling)
        return deeds.denial(use, ruling)
    if ruling.decision == "allow" and ruling.standing is not None:
        # False where a former worker had begun: whether the step may be done again is its effect's.
        confirmations.use(ruling.standing)
    return ruling


def _without_runner(run: Run, use: ToolUse) -> Refused | None:
    """Return why the runner that a call names cannot perform it; a denial is told as one."""
    if use.is_own or use.target_id is None:
        return None
    try:
        find_runner(_caller_of(run), use.target_id)
    except PolicyDenied as denied:
        _record_denial(run, use, denied)
        return denied
    except TargetNotFound as missing:
        return missing
    return None


def page_lost(use: ToolUse) -> PageLost:
    """Return the failure of a call about which a person was asked on a page that is gone (runs.md,
    "Concurrency").
    """
    return PageLost(
        "The page was lost while the run waited for a person; nothing was done on it since.",
        details={"causeCode": "PAGE_CRASHED", "effect": "none", "step": use.step_index},
    )


def is_taken_over(task_id: str) -> bool:
    """Tell whether a person has the page of a task."""
    return Task.objects.filter(id=task_id, status=TaskStatus.TAKEOVER).exists()


def begin_call(
    run: Run, *, use: ToolUse, call: MadeCall, may_begin: bool, opened: list[str]
) -> tuple[Ruling | Refused | None, Place | ToolFailed | Refused | None]:
    """Return what becomes of a step's call, as `rule_on_call` does, and where it works: a folder, a
    runner, why there is neither for it, or None where it needs no place or does not begin; on the
    run's database thread.

    A call that has a place is told before it is made, and named in `opened`; a target that is
    disabled is a denial, and told as one. Without `may_begin` policy is asked alone.

    Raises:
        LeaseLost: The run is not ours any more; the call is not to be made.
    """
    if may_begin and (begun := _begin_by_heart(run, use, call, opened=opened)) is not None:
        return begun
    ruling = rule_on_call(run, use)
    is_allowed = isinstance(ruling, Ruling) and ruling.decision == "allow"
    if not (is_allowed and may_begin and _needs_place(use)):
        return ruling, None
    return ruling, _begin(run, use, call, opened=opened)


def _begin_by_heart(
    run: Run, use: ToolUse, call: MadeCall, *, opened: list[str]
) -> tuple[Ruling, Place | None] | None:
    """Begin a call by what this process knows of policy and of the target, in one statement that
    tests both; None where they have to be asked anew: nothing was written.
    """
    if connection.vendor != "postgresql" or (allowed := _allowed_by_heart(use)) is None:
        return None
    ruling, *still = *allowed, *_is_nobodys_page(run)
    if not _needs_place(use):
        return (ruling, None) if holds(still) else None
    known = target_by_heart(_caller_of(run), use.target_id) if use.target_id else None
    if known is None:
        return None
    try:
        place = _place_on(run, use, known)
    except (ToolFailed, Refused):
        return None  # whoever asks anew says it
    still.append(is_unchanged(known))
    if not open_call_of_run(call.call_id, _begun(run, use, call), run, if_still=still):
        return None
    opened.append(call.call_id)
    return ruling, place


def _allowed_by_heart(use: ToolUse) -> tuple[Ruling, StillSo] | None:
    """Return the ruling on a call that passes by the rules as this process knows them, and the
    condition under which it holds; None where anything else is to be said, or a person was asked
    before: `rule_on_call` says it.
    """
    if use.was_asked:
        return None
    policy = policy_by_heart(
        principal_id=use.principal_id, tenant_id=use.tenant_id, workspace_id=use.workspace_id
    )
    verdict = policy.judge(use.tool, use.target_id, is_own=use.is_own)
    return (Ruling(verdict, "allow"), policy.still_so) if verdict.decision == "allow" else None


def _is_nobodys_page(run: Run) -> list[StillSo]:
    """That no person has the page of the run's task, as `is_taken_over` asks."""
    if run.task_id is None:
        return []
    taken = "NOT EXISTS (SELECT 1 FROM runs_task WHERE id = %s AND status = %s)"
    return [StillSo(taken, (run.task_id, TaskStatus.TAKEOVER.value))]


def _needs_place(use: ToolUse) -> bool:
    tool = get_tool(use.tool) if use.is_own else None
    return tool is None or tool.kind == "workspace"


def _begin(
    run: Run, use: ToolUse, call: MadeCall, *, opened: list[str]
) -> Place | ToolFailed | Refused:
    caller, find = _caller_of(run), find_target if use.is_own else find_runner
    try:
        target = find(caller, use.target_id)
        place = _place_on(run, use, target)
    except PolicyDenied as denied:
        _record_denial(run, use, denied)
        return denied
    except (ToolFailed, TargetNotFound) as failed:
        return failed
    keep_by_heart(caller, target)
    if not open_call_of_run(call.call_id, _begun(run, use, call), run):
        raise LeaseLost(run.id)
    opened.append(call.call_id)
    return place


def _place_on(run: Run, use: ToolUse, target: ExecutionTarget) -> Place:
    """Return what a target is to a call: the folder that it works in, or the runner that performs
    it.

    Raises:
        ToolFailed, Refused: It is not for this call.
    """
    caller, tool = _caller_of(run), get_tool(use.tool) if use.is_own else None
    if target.kind != (TargetKind.DOCKER_RUNNER if tool is None else TargetKind.WORKSPACE):
        raise TargetNotFound(f"There is no such target {target.id} for {use.tool[:128]}.")
    if tool is None:
        return runner_of(target, caller)
    chosen = run.options.get(DEVELOPER_TARGET)
    place = open_target(caller, target, developer_target=chosen, tool=tool.name)
    check_may_use(tool, place, trust=caller.trust)
    return place


def _begun(run: Run, use: ToolUse, call: MadeCall) -> Deed:
    return begun(run, use.step_index or 0, call)


def record_fallback(run: Run, use: ToolUse, reason: str) -> None:
    """Tell that a call which did not reach its runner is made here instead; commits."""
    told = {
        "tool": use.tool[:128],
        "step": use.step_index,
        "targetId": use.target_id,
        "reason": reason,
    }
    place = run.tenant_id, run.workspace_id
    record(Deed("tool.fell_back", run.principal_id, "run", run.id, *place, told))


def _caller_of(run: Run) -> Caller:
    return Caller(run.principal_id, run.tenant_id, run.workspace_id, trust_of(run))


def trust_of(run: Run) -> TrustLevel:
    """Return the trust level of a run's caller."""
    return "local" if run.trust == "local" else "remote"


def _record_denial(run: Run, use: ToolUse, denied: PolicyDenied) -> None:
    told = {"tool": use.tool[:128], "step": use.step_index, "rule": denied.message[:200]}
    told |= {"argsDigest": use.digest, **({"targetId": use.target_id} if use.target_id else {})}
    place = run.tenant_id, run.workspace_id
    record(Deed("policy.denied", run.principal_id, "run", run.id, *place, told))
