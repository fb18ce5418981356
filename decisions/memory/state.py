"""A user's state: how much is left on each axis. Read here, and changed here alone, with evidence.

A change moves a value by 0.25 · confidence · Δ, within 0..1. Each change raises the value's
confidence by 0.25 · the change's confidence · the remaining uncertainty. The axis with the lowest
value is the main constraint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from decisions.identity.principals import Principal
from decisions.memory.owner import Owner, owner_of
from decisions.models import Axis, AxisValue, Evidence

AXES = tuple(Axis.values)
DAMPING = 0.25
_START = dict.fromkeys(AXES, (0.5, 0.3)) | {Axis.RELIABILITY.value: (0.8, 0.5)}
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class AxisState:
    """One axis: 0 is nothing left, 1 is plenty; `updated_at` is None before the first change."""

    value: float
    confidence: float
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class UserState:
    """All axes of a user."""

    user_id: str
    axes: Mapping[str, AxisState]

    @property
    def main_constraint(self) -> str:
        """The axis with the lowest value; of equals the first in S2's order."""
        return min(AXES, key=lambda axis: self.axes[axis].value)

    def scarcity(self, axis: str) -> float:
        """Return 1 - value of an axis."""
        return 1.0 - self.axes[axis].value

    def as_dict(self) -> dict[str, Any]:
        """Return the state as the APIs represent it."""
        return {
            "user_id": self.user_id,
            "axes": {axis: _axis_as_dict(self.axes[axis]) for axis in AXES},
            "main_constraint": self.main_constraint,
        }


@dataclass(frozen=True, slots=True)
class AxisChange:
    """A reported change of an axis.

    Attributes:
        delta: -1..1, before damping.
        confidence: of the report, 0..1.
        source: `chat`, `outcome` or `streak`.
        at_most: a limit for the value after this change.
    """

    axis: str
    delta: float
    confidence: float
    source: str
    note: str = ""
    decision_id: int | None = None
    at_most: float = 1.0


def _axis_as_dict(axis: AxisState) -> dict[str, Any]:
    at = axis.updated_at
    return {
        "value": axis.value,
        "confidence": axis.confidence,
        "updated_at": at.isoformat() if at else None,
    }


def read_state(owner: Owner) -> UserState:
    """Return a user's state, one query; unknown axes have start values."""
    stored = {
        row.axis: AxisState(row.value, row.confidence, row.updated_at)
        for row in AxisValue.objects.filter(workspace_id=owner.workspace_id, user_id=owner.user_id)
    }
    axes = {axis: stored.get(axis) or AxisState(*_START[axis]) for axis in AXES}
    return UserState(owner.user_id, axes)


def cost_of(impact: Mapping[str, float], state: UserState, *, irreversible: bool) -> float:
    """Return the cost of an impact for a user, 0..10: Σ |Δ| · scarcity, times 5 if irreversible."""
    total = sum(abs(delta) * state.scarcity(axis) for axis, delta in impact.items())
    return round(min(10.0, total * (5.0 if irreversible else 1.0)), _DIGITS)


def get_state(*, principal: Principal, user_id: str) -> dict[str, Any]:
    """Return a user's state as the APIs represent it.

    Raises:
        Forbidden, ForbiddenUser: As `owner_of`.
    """
    return read_state(owner_of(principal, user_id, scope="continuity:read")).as_dict()


@transaction.atomic
def apply_changes(owner: Owner, changes: Sequence[AxisChange]) -> None:
    """Apply changes, each with its row of evidence, in the caller's transaction or a new one.

    A change with delta 0 or confidence 0 is ignored.
    """
    effective = [change for change in changes if change.delta and change.confidence]
    if not effective:
        return
    owner.lock()
    axes, now, evidence = dict(read_state(owner).axes), datetime.now(UTC), []
    for change in effective:
        before = axes[change.axis]
        axes[change.axis] = _changed(before, change, now)
        evidence.append(_evidence(owner, change, before, axes[change.axis], now))
    for axis in {change.axis for change in effective}:
        AxisValue.objects.update_or_create(
            workspace_id=owner.workspace_id,
            user_id=owner.user_id,
            axis=axis,
            defaults={
                "tenant_id": owner.tenant_id,
                "value": axes[axis].value,
                "confidence": axes[axis].confidence,
                "updated_at": now,
            },
        )
    Evidence.objects.bulk_create(evidence)


def _changed(before: AxisState, change: AxisChange, now: datetime) -> AxisState:
    ceiling = max(before.value, min(1.0, change.at_most))
    value = before.value + DAMPING * change.confidence * change.delta
    confidence = before.confidence + DAMPING * change.confidence * (1 - before.confidence)
    return AxisState(
        round(min(ceiling, max(0.0, value)), _DIGITS), round(min(1.0, confidence), _DIGITS), now
    )


def _evidence(
    owner: Owner, change: AxisChange, before: AxisState, after: AxisState, at: datetime
) -> Evidence:
    return Evidence(
        **owner.columns,
        axis=change.axis,
        source=change.source,
        decision_id=change.decision_id,
        delta=change.delta,
        confidence=change.confidence,
        value_before=before.value,
        value_after=after.value,
        note=change.note[:500],
        created_at=at,
    )
