"""Learning from a reported outcome: forecast errors, state changes, a suggested success path.

    actual impact reported   each axis changes by it
    success without one      by the forecast, with the forecast's confidence
    partial without one      by the forecast, with half of its confidence
    failed without one       reliability decreases, unless the system caused the failure

Five clean successes in a row raise reliability by 0.02, up to 0.9, but not within a week of an L4
decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from decisions.memory.owner import Owner
from decisions.memory.state import AXES, AxisChange, apply_changes, cost_of, read_state
from decisions.memory.success_paths import propose_path
from decisions.models import Axis, Evidence, Outcome, OutcomeStatus

OBSERVED_CONFIDENCE = 0.9  # confidence of a reported actual impact
FAILURE = -0.2  # change of reliability by a failure
STREAK = 5
STREAK_DELTA = 0.08  # damped by 0.25: 0.02
STREAK_CEILING = 0.9
STREAK_FREEZE = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What was expected of a decision when it was made.

    Attributes:
        impact: axis -> change, -1..1; axes that are left out do not change.
        confidence: of the impact, 0..1.
        cost: 0..10.
        layer: the memory layer, L1..L4.
        intent: the user's request as text.
        slots: slot name -> value that the user gave.
    """

    impact: Mapping[str, float]
    confidence: float
    cost: float
    layer: str
    irreversible: bool = False
    intent: str = ""
    slots: Mapping[str, Any] = field(default_factory=dict)


def errors_of(
    forecast: Forecast, report: Mapping[str, Any], owner: Owner
) -> tuple[float | None, float | None, float | None]:
    """Return impact error, actual cost and cost error; None for what the report does not contain.

    If the report has an impact but no cost, the cost is computed as for forecasts.
    """
    impact, cost = report.get("actual_impact_vector"), report.get("actual_cost")
    impact_error = None
    if impact is not None:
        differences = [abs(impact.get(axis, 0.0) - forecast.impact.get(axis, 0.0)) for axis in AXES]
        impact_error = round(sum(differences) / len(AXES), 6)
        if cost is None:
            cost = cost_of(impact, read_state(owner), irreversible=forecast.irreversible)
    return impact_error, cost, None if cost is None else round(cost - forecast.cost, 6)


def changes_of(outcome: Outcome, forecast: Forecast, report: Mapping[str, Any]) -> list[AxisChange]:
    """Return the changes of the state that follow from a report."""
    status, actual = report["outcome_status"], report.get("actual_impact_vector")
    if actual is not None:
        impact, confidence = actual, OBSERVED_CONFIDENCE
    elif status == OutcomeStatus.FAILED:
        impact = {} if report.get("system_caused") else {Axis.RELIABILITY.value: FAILURE}
        confidence = OBSERVED_CONFIDENCE
    else:
        factor = 1.0 if status == OutcomeStatus.SUCCESS else 0.5
        impact, confidence = forecast.impact, forecast.confidence * factor
    note = f"{status}: {report['outcome_note']}" if report["outcome_note"] else str(status)
    return [
        AxisChange(axis, impact[axis], confidence, "outcome", note, outcome.decision_id)
        for axis in AXES
        if impact.get(axis)
    ]


def learn(outcome: Outcome, forecast: Forecast, report: Mapping[str, Any]) -> None:
    """Change the user's state by a report, and set the errors, the cost and the proposal of the
    outcome, which the caller saves.

    Runs in the caller's transaction, after the report was saved.
    """
    owner = Owner(outcome.tenant_id, outcome.workspace_id, outcome.user_id)
    outcome.impact_error, outcome.actual_cost, outcome.cost_error = errors_of(
        forecast, report, owner
    )
    apply_changes(owner, [*changes_of(outcome, forecast, report), *_streak(owner, outcome)])
    is_success = report["outcome_status"] == OutcomeStatus.SUCCESS
    outcome.proposal = propose_path(report, forecast.intent, forecast.slots) if is_success else None


def _streak(owner: Owner, outcome: Outcome) -> Sequence[AxisChange]:
    """Return the change for a streak of clean successes, if this outcome completes one."""
    own = {"workspace_id": owner.workspace_id, "user_id": owner.user_id}
    if read_state(owner).axes[Axis.RELIABILITY].value >= STREAK_CEILING:
        return []
    since = datetime.now(UTC) - STREAK_FREEZE
    if Outcome.objects.filter(**own, layer="L4", opened_at__gt=since).exists():
        return []
    reported = Outcome.objects.filter(**own, reported_at__isnull=False)
    last = Evidence.objects.filter(**own, axis=Axis.RELIABILITY, source="streak").order_by("-id")
    rewarded = last.values_list("created_at", flat=True).first()
    if rewarded is not None:
        reported = reported.filter(reported_at__gt=rewarded)
    newest = list(reported.order_by("-reported_at", "-id")[:STREAK])
    if len(newest) < STREAK or not all(_is_clean(one) for one in newest):
        return []
    note = f"{STREAK} clean successes in a row"
    return [
        AxisChange(
            Axis.RELIABILITY, STREAK_DELTA, 1.0, "streak", note, outcome.decision_id, STREAK_CEILING
        )
    ]


def _is_clean(outcome: Outcome) -> bool:
    return outcome.status == OutcomeStatus.SUCCESS and not outcome.system_caused
