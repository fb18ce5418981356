"""What a user has to spend, axis by axis: read here, and moved here alone, with evidence.

A value moves by 0.25 · confidence · Δ and stays within 0 and 1; how sure it is grows with every
evidence by a quarter of what is left, times the evidence's own confidence. The scarcest axis is the
main constraint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from decisions.continuity.owner import Owner, owner_of
from decisions.identity.principals import Principal
from decisions.models import Axis, AxisValue, Evidence

AXES = tuple(Axis.values)
DAMPING = 0.25
_START = dict.fromkeys(AXES, (0.5, 0.3)) | {Axis.RELIABILITY.value: (0.8, 0.5)}
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class AxisState:
    """One axis: 0 is nothing left, 1 plenty; `updated_at` is None until something was learnt."""

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
        """The scarcest axis; of equals the first in S2's order."""
        return min(AXES, key=lambda axis: self.axes[axis].value)

    def scarcity(self, axis: str) -> float:
        """Return how little of an axis is left, 0..1."""
        return 1.0 - self.axes[axis].value

    def as_dict(self) -> dict[str, Any]:
        """Return the state as every door shows it."""
        return {
            "user_id": self.user_id,
            "axes": {axis: _shown(self.axes[axis]) for axis in AXES},
            "main_constraint": self.main_constraint,
        }


@dataclass(frozen=True, slots=True)
class AxisChange:
    """A change of an axis that somebody told.

    Attributes:
        delta: -1..1, before it is damped.
        confidence: of who told it, 0..1.
        source: `chat`, `outcome` or `streak`.
        at_most: a value that this move alone does not pass.
    """

    axis: str
    delta: float
    confidence: float
    source: str
    note: str = ""
    decision_id: int | None = None
    at_most: float = 1.0


def _shown(axis: AxisState) -> dict[str, Any]:
    at = axis.updated_at
    return {
        "value": axis.value,
        "confidence": axis.confidence,
        "updated_at": at.isoformat() if at else None,
    }


def state_of(owner: Owner) -> UserState:
    """Return a user's state, one query; a user of whom nothing is known has the values to start
    from.
    """
    known = {
        row.axis: AxisState(row.value, row.confidence, row.updated_at)
        for row in AxisValue.objects.filter(workspace_id=owner.workspace_id, user_id=owner.user_id)
    }
    axes = {axis: known.get(axis) or AxisState(*_START[axis]) for axis in AXES}
    return UserState(owner.user_id, axes)


def cost_of(impact: Mapping[str, float], state: UserState, *, irreversible: bool) -> float:
    """Return what an impact costs a user, 0..10: Σ |Δ| · scarcity, five times that where nothing
    brings it back.
    """
    total = sum(abs(delta) * state.scarcity(axis) for axis, delta in impact.items())
    return round(min(10.0, total * (5.0 if irreversible else 1.0)), _DIGITS)


def get_state(*, principal: Principal, user_id: str) -> dict[str, Any]:
    """Answer `GET /user/{user_id}/state`.

    Raises:
        Forbidden, ForbiddenUser: As `owner_of`.
    """
    return state_of(owner_of(principal, user_id, scope="continuity:read")).as_dict()


@transaction.atomic
def apply_changes(owner: Owner, moves: Sequence[AxisChange]) -> list[Evidence]:
    """Carry out moves, each with its row of evidence, as part of the caller's transaction where
    there is one; a move that says nothing (Δ 0, confidence 0) leaves neither.
    """
    telling = [move for move in moves if move.delta and move.confidence]
    if not telling:
        return []
    owner.lock()
    axes, now, told = dict(state_of(owner).axes), datetime.now(UTC), []
    for move in telling:
        before = axes[move.axis]
        axes[move.axis] = _moved(before, move, now)
        told.append(_evidence(owner, move, before, axes[move.axis], now))
    for axis in {move.axis for move in telling}:
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
    return Evidence.objects.bulk_create(told)


def _moved(before: AxisState, move: AxisChange, now: datetime) -> AxisState:
    ceiling = max(before.value, min(1.0, move.at_most))
    value = before.value + DAMPING * move.confidence * move.delta
    surer = before.confidence + DAMPING * move.confidence * (1 - before.confidence)
    return AxisState(
        round(min(ceiling, max(0.0, value)), _DIGITS), round(min(1.0, surer), _DIGITS), now
    )


def _evidence(
    owner: Owner, move: AxisChange, before: AxisState, after: AxisState, at: datetime
) -> Evidence:
    return Evidence(
        **owner.columns,
        axis=move.axis,
        source=move.source,
        decision_id=move.decision_id,
        delta=move.delta,
        confidence=move.confidence,
        value_before=before.value,
        value_after=after.value,
        note=move.note[:500],
        created_at=at,
    )
