"""What an outcome teaches: how far the forecast was off, where the state moves, which way worked.

    actual impact told       each axis moves by it
    success without one      by the forecast, as sure as that was
    partial without one      the same, half as sure
    failed without one       reliability alone goes down, unless the system was at fault

Five clean successes in a row raise reliability by 0.02, up to 0.9, and not within a week of an L4
decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from decisions.continuity.owner import Owner
from decisions.continuity.state import AXES, AxisChange, apply_changes, cost_of, state_of
from decisions.continuity.success_paths import propose_path
from decisions.models import Axis, Evidence, Outcome, OutcomeStatus

OBSERVED_CONFIDENCE = 0.9  # how sure an impact is that somebody saw
FAILURE = -0.2  # what a failure says of reliability
STREAK = 5
STREAK_DELTA = 0.08  # damped by 0.25: 0.02
STREAK_CEILING = 0.9
STREAK_FREEZE = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What was expected of a decision when it was made.

    Attributes:
        impact: Δ by axis, -1..1; axes that are left out stay as they are.
        confidence: of the impact, 0..1.
        cost: 0..10.
        layer: of memory, L1..L4.
        intent: what the user wanted, in words.
        slots: what the user said of it, by the slots' names.
    """

    impact: Mapping[str, float]
    confidence: float
    cost: float
    layer: str
    irreversible: bool = False
    intent: str = ""
    slots: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LearnedValues:
    """What was learnt; the outcome's columns of these names."""

    impact_error: float | None
    cost_error: float | None
    actual_cost: float | None
    proposal: Mapping[str, Any] | None


def errors_of(
    forecast: Forecast, report: Mapping[str, Any], owner: Owner
) -> tuple[float | None, float | None, float | None]:
    """Return impact error, actual cost, cost error; None for what the report does not tell. The
    cost of an impact that was told without one is reckoned as forecasts are.
    """
    impact, cost = report.get("actual_impact_vector"), report.get("actual_cost")
    off = None
    if impact is not None:
        apart = [abs(impact.get(axis, 0.0) - forecast.impact.get(axis, 0.0)) for axis in AXES]
        off = round(sum(apart) / len(AXES), 6)
        if cost is None:
            cost = cost_of(impact, state_of(owner), irreversible=forecast.irreversible)
    return off, cost, None if cost is None else round(cost - forecast.cost, 6)


def changes_of(outcome: Outcome, forecast: Forecast, report: Mapping[str, Any]) -> list[AxisChange]:
    """Return how the state moves by a report."""
    status, told = report["outcome_status"], report.get("actual_impact_vector")
    if told is not None:
        impact, confidence = told, OBSERVED_CONFIDENCE
    elif status == OutcomeStatus.FAILED:
        impact = {} if report.get("system_caused") else {Axis.RELIABILITY.value: FAILURE}
        confidence = OBSERVED_CONFIDENCE
    else:
        halved = 1.0 if status == OutcomeStatus.SUCCESS else 0.5
        impact, confidence = forecast.impact, forecast.confidence * halved
    note = f"{status}: {report['outcome_note']}" if report["outcome_note"] else str(status)
    return [
        AxisChange(axis, impact[axis], confidence, "outcome", note, outcome.decision_id)
        for axis in AXES
        if impact.get(axis)
    ]


def learn(outcome: Outcome, forecast: Forecast, report: Mapping[str, Any]) -> LearnedValues:
    """Move the state and return what was learnt. The outcome is reported in the caller's
    transaction already.
    """
    owner = Owner(outcome.tenant_id, outcome.workspace_id, outcome.user_id)
    off, cost, cost_off = errors_of(forecast, report, owner)
    apply_changes(owner, [*changes_of(outcome, forecast, report), *_streak(owner, outcome)])
    is_success = report["outcome_status"] == OutcomeStatus.SUCCESS
    proposal = propose_path(report, forecast.intent, forecast.slots) if is_success else None
    return LearnedValues(off, cost_off, cost, proposal)


def _streak(owner: Owner, outcome: Outcome) -> Sequence[AxisChange]:
    """Return the move that a row of clean successes is worth, if this one completes it."""
    mine = {"workspace_id": owner.workspace_id, "user_id": owner.user_id}
    if state_of(owner).axes[Axis.RELIABILITY].value >= STREAK_CEILING:
        return []
    since = datetime.now(UTC) - STREAK_FREEZE
    if Outcome.objects.filter(**mine, layer="L4", opened_at__gt=since).exists():
        return []
    reported = Outcome.objects.filter(**mine, reported_at__isnull=False)
    last = Evidence.objects.filter(**mine, axis=Axis.RELIABILITY, source="streak").order_by("-id")
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
