"""The score of acting: gain − (cost + memory penalty) − uncertainty penalty − feature penalty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from decisions.chat.history.retrieval import Past, PastEvent, recency

_WEIGHT_OF_LAYER = {"L1": 0.0, "L2": 0.1, "L3": 0.3, "L4": 0.6}
_EVENTS, _MAX_PENALTY = 5, 3.0


@dataclass(frozen=True, slots=True)
class Score:
    """The parts of a score; `risk` is the forecast's cost, 0..10."""

    gain: float
    risk: float
    memory_penalty: float
    uncertainty_penalty: float
    feature_penalty: float

    @property
    def value(self) -> float:
        """Zero or more: act."""
        net = self.gain - (self.risk + self.memory_penalty)
        return round(net - self.uncertainty_penalty - self.feature_penalty, 4)

    def as_dict(self) -> dict[str, float]:
        """Return the `decision` of a response (S2)."""
        return {
            "score": self.value,
            "predicted_gain": self.gain,
            "predicted_risk": self.risk,
            "memory_penalty": self.memory_penalty,
            "uncertainty_penalty": self.uncertainty_penalty,
        }


def score_of(past: Past, *, cost: float, confidence: float) -> Score:
    """Return the score of acting now."""
    return Score(
        gain=round(min(10.0, 5.0 + past.retrieval_score / 2), 4),
        risk=cost,
        memory_penalty=_memory_penalty(past.events),
        uncertainty_penalty=round(0.4 * (1.0 - confidence), 4),
        feature_penalty=past.feature_penalty,
    )


def _memory_penalty(events: Sequence[PastEvent]) -> float:
    """Return the penalty for similar past events, at most 3: the five most similar, weighted by
    layer, similarity and recency.
    """
    weights = (
        _WEIGHT_OF_LAYER[one.layer] * one.similarity * recency(one.age_days)
        for one in events[:_EVENTS]
    )
    return round(min(_MAX_PENALTY, sum(weights)), 4)
