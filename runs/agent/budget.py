"""What a run of the agent has used of the model, and whether that is all that it may."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from runs.agent.journal_view import Journal, turns_of


def usage_of(journal: Journal) -> dict[str, Any]:
    """Return {turns, inputTokens, outputTokens, costUsd, estimated?}; the cost is None where that
    of a turn is not known.
    """
    used = [line.output["usage"] for line in turns_of(journal) if line.output]
    costs = [one["costUsd"] for one in used]
    total: dict[str, Any] = {
        "turns": len(used),
        "inputTokens": sum(one["inputTokens"] for one in used),
        "outputTokens": sum(one["outputTokens"] for one in used),
        "costUsd": None if None in costs else round(sum(costs), 6),
    }
    return total | ({"estimated": True} if any("estimated" in one for one in used) else {})


def is_budget_exhausted(used: dict[str, Any]) -> bool:
    """Tell whether no further turn may begin."""
    most, cost = settings.AGENT_MAX_COST_USD, used["costUsd"]
    if used["inputTokens"] + used["outputTokens"] >= settings.AGENT_MAX_TOKENS:
        return True
    return most is not None and cost is not None and cost >= most
