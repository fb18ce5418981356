"""Evaluation of a message: the steps that only read and compute, before the user is locked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from decisions.chat.analysis.gate import Gate, evaluate_gate
from decisions.chat.analysis.impact import Impact, impact_of
from decisions.chat.conversation import ChatTurn, read_turn
from decisions.chat.history.retrieval import Past, extend_past, find_past
from decisions.chat.score import Score, score_of
from decisions.memory.owner import Owner
from decisions.memory.state import UserState, cost_of, read_state
from decisions.models import DecisionMode


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of the steps for one turn."""

    state: UserState
    impact: Impact
    cost: float
    layer: str
    past: Past
    score: Score
    gate: Gate

    @property
    def mode(self) -> DecisionMode:
        """The decision: a gate hit overrides the score."""
        if self.gate.hit:
            return DecisionMode.CONFIRM
        return DecisionMode.ACT if self.score.value >= 0 else DecisionMode.CLARIFY


@dataclass(frozen=True, slots=True)
class Draft:
    """A turn and its evaluation; None while required slots are missing."""

    turn: ChatTurn
    evaluation: Evaluation | None

    @property
    def last_event_id(self) -> int | None:
        """The newest event of the user that was compared; None if none was."""
        return self.evaluation.past.last_event_id or None if self.evaluation else None


def draft_reply(owner: Owner, call: Mapping[str, Any]) -> Draft:
    """Read and evaluate a message; writes nothing. Not for transactions: it may be slow."""
    turn = read_turn(owner, call)
    return Draft(turn, None if turn.missing else _evaluate(owner, turn))


def refresh_draft(owner: Owner, draft: Draft) -> Draft:
    """Return the draft updated with the user's newer events, which are few."""
    turn, evaluation = draft.turn, draft.evaluation
    if evaluation is None:
        return draft
    past = extend_past(evaluation.past, owner, _forms(turn))
    score = score_of(past, cost=evaluation.cost, confidence=evaluation.impact.confidence)
    gate = evaluate_gate(turn.masked_finding, past.top_l4)
    return replace(draft, evaluation=replace(evaluation, past=past, score=score, gate=gate))


def _evaluate(owner: Owner, turn: ChatTurn) -> Evaluation:
    finding, state = turn.finding, read_state(owner)
    risk = finding.rule if finding else None
    impact = impact_of(turn.exact.message, turn.task_type, risk, slots_known=bool(turn.slots))
    cost = cost_of(impact.vector, state, irreversible=impact.irreversible)
    past = find_past(
        owner,
        _forms(turn),
        is_risky=finding is not None,
        slots=turn.slots,
        main_constraint=state.main_constraint,
    )
    return Evaluation(
        state=state,
        impact=impact,
        cost=cost,
        layer="L4" if finding else impact.layer,
        past=past,
        score=score_of(past, cost=cost, confidence=impact.confidence),
        gate=evaluate_gate(turn.masked_finding, past.top_l4),
    )


def _forms(turn: ChatTurn) -> list[str]:
    """Return the request as it was sent and, if it differs, as past events have it: masked."""
    return list(dict.fromkeys([turn.exact.message, turn.masked.message]))
