"""What becomes of a step's call before it is made: policy, people, whoever has the page; and the
place that it works in, a folder or a runner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from decisions import confirmations, deeds
from decisions.audit import Deed, record
from decisions.deeds import Ruling, ToolUse
from decisions.errors import PolicyDenied, Refused, TargetNotFound
from decisions.policy import Verdict
from runners.base import Tool
from runners.errors import ToolFailed
from runners.gateway.wanted import RunnerTarget
from runners.remote import find_runner, runner_of
from runners.targets import Caller
from runners.trust import TrustLevel
from runners.workspace.place import Workspace
from runners.workspaces import check_may_use, open_workspace
from runs.claims import LeaseLost
from runs.made_calls import MadeCall, begun
from runs.models import APPROVED, DEVELOPER_TARGET, Run, Task, TaskStatus
from runs.open_calls import open_call_of_run


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

    def __init__(self, question: str) -> None:
        super().__init__(question)
        self.question = question


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


def rule_on_call(use: ToolUse, run: Run) -> Ruling | None:
    """Return what becomes of a step's call, on the run's database thread; an approval is used up
    here. None: a person has the page of the run's task, and nothing is called meanwhile.
    """
    if run.task_id is not None and is_taken_over(run.task_id):
        return None
    approved = run.options.get(APPROVED)  # the direct call that the run carries: a person let it
    ruling = deeds.rule_on(use)
    if ruling.decision == "confirm" and ruling.standing is None and approved is not None:
        may = confirmations.was_approved(
            approved, digests=use.digests, principal_id=use.principal_id
        )
        return Ruling(ruling.verdict, "allow") if may else ruling
    if ruling.decision == "deny":
        deeds.record_denial(use, ruling)
    if ruling.decision == "allow" and ruling.standing is not None:
        # False where a former worker had begun: whether the step may be done again is its effect's.
        confirmations.use(ruling.standing)
    return ruling


def times_given_back(task_id: str | None) -> int:
    """Return how often a person gave back the page of a task, which may be any other since."""
    counts = Task.objects.filter(id=task_id).values_list("times_given_back", flat=True)
    return counts[0] if task_id is not None else 0


def is_taken_over(task_id: str) -> bool:
    """Tell whether a person has the page of a task."""
    return Task.objects.filter(id=task_id, status=TaskStatus.TAKEOVER).exists()


def begin_call(
    run: Run, step: int, tool: Tool | None, use: ToolUse, call: MadeCall, *, opened: list[str]
) -> Workspace | RunnerTarget | ToolFailed | Refused:
    """Return the folder that a call of a workspace tool works in, or the runner that performs a
    call (`tool` is None), or why there is none for it; on the run's database thread. A call that
    may change something is told first, and named in `opened`; a target that is disabled is a
    denial, and told as one.

    Raises:
        LeaseLost: The run is not ours any more; the call is not to be made.
    """
    trust = trust_of(run)
    caller = Caller(run.principal_id, run.tenant_id, run.workspace_id, trust)
    place: Workspace | RunnerTarget
    try:
        if tool is None:
            place = runner_of(find_runner(caller, use.target_id), caller)
        else:
            chosen = run.options.get(DEVELOPER_TARGET)
            place = open_workspace(caller, use.target_id, developer_target=chosen, tool=tool.name)
            check_may_use(tool, place, trust=trust)
    except PolicyDenied as denied:
        _record_denial(run, step, use, denied)
        return denied
    except (ToolFailed, TargetNotFound) as failed:
        return failed
    if call.call_id:
        if not open_call_of_run(call.call_id, begun(run, step, call), run):
            raise LeaseLost(run.id)
        opened.append(call.call_id)
    return place


def record_fallback(run: Run, step: int, use: ToolUse, reason: str) -> None:
    """Tell that a call which did not reach its runner is made here instead; commits."""
    told = {"tool": use.tool[:128], "step": step, "targetId": use.target_id, "reason": reason}
    place = run.tenant_id, run.workspace_id
    record(Deed("tool.fell_back", run.principal_id, "run", run.id, *place, told))


def trust_of(run: Run) -> TrustLevel:
    """Return the trust level of a run's caller."""
    return "local" if run.trust == "local" else "remote"


def _record_denial(run: Run, step: int, use: ToolUse, denied: PolicyDenied) -> None:
    told = {"tool": use.tool[:128], "step": step, "rule": denied.message[:200]}
    told |= {"argsDigest": use.digest, **({"targetId": use.target_id} if use.target_id else {})}
    place = run.tenant_id, run.workspace_id
    record(Deed("policy.denied", run.principal_id, "run", run.id, *place, told))
