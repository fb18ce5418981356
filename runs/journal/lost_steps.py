"""Steps that a lost worker left started: a `once` step fails instead of being repeated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runners.errors import ToolFailed
from runs.journal.step_records import failed
from runs.lifecycle.changes import StepChange
from runs.models import RunStep, StepStatus


def effect_unknown(row: RunStep) -> Mapping[str, Any]:
    """Return the error of a `once` step whose worker was lost: it may have had its effect, so it is
    not repeated.
    """
    return ToolFailed(
        f"The worker was lost during '{row.name}'; whether it had its effect is unknown.",
        details={"effect": "unknown", "step": row.index},
    ).as_dict()


def lost_steps(rows: Iterable[RunStep], started: Iterable[StepChange]) -> list[StepChange]:
    """Return the failures of `once` steps that an earlier worker started and did not end; those in
    `started` start with this lease.
    """
    ours = {change.index for change in started}
    left = [row for row in rows if row.status == StepStatus.STARTED and row.index not in ours]
    return [failed(row, effect_unknown(row)) for row in left]
