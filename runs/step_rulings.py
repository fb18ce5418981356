"""What becomes of a step's call before it is made: policy, people, whoever has the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decisions import confirmations, deeds
from decisions.deeds import Ruling, ToolUse
from decisions.policy import Verdict
from runs.models import APPROVED, Run, Task, TaskStatus


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


def rule_on_call(use: ToolUse, run: Run) -> Ruling | None:
    """Return what becomes of a step's call, on the run's database thread; an approval is used up
    here. None: a person has the page of the run's task, and nothing is called meanwhile.
    """
    if run.task_id is not None and is_taken_over(run.task_id):
        return None
    approved = run.options.get(APPROVED)
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


def is_taken_over(task_id: str) -> bool:
    """Tell whether a person has the page of a task."""
    return Task.objects.filter(id=task_id, status=TaskStatus.TAKEOVER).exists()
