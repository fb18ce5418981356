"""What becomes of a call that a step wants to make: policy's word, and a person's where it was
asked for.
"""

from __future__ import annotations

from decisions import confirmations, deeds
from decisions.deeds import Ruling, ToolUse


def rule_on_step(use: ToolUse, approved: int | None) -> Ruling:
    """Return what becomes of a step's call, on the run's database thread; an approval is used up
    here.

    `approved`: the decision by which a person let pass the direct call that the run carries.
    """
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
