"""What becomes of a step's call before it is made, and why a step stops: policy, people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decisions import confirmations, deeds
from decisions.deeds import Ruling, ToolUse
from runs.models import APPROVED, Run


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


class NeedsAnswer(Exception):
    """A question that whoever handed the run in has to answer before the step goes on."""

    def __init__(self, question: str) -> None:
        super().__init__(question)
        self.question = question


def rule_on_call(use: ToolUse, run: Run) -> Ruling:
    """Return what becomes of a step's call, on the run's database thread; an approval is used up
    here.
    """
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
