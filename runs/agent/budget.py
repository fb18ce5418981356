"""The model usage of an agent run (turns, tokens, cost), and its limits."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from runs.agent.journal_view import Journal, turns_of


def usage_of(journal: Journal) -> dict[str, Any]:
    """Return {turns, inputTokens, outputTokens, cacheReadTokens?, cacheWriteTokens?, costUsd,
    estimated?}, summed over the run's turns.

    Input tokens include those of the server's prompt cache. costUsd is None if the cost of any turn
    is unknown.
    """
    usages = [turn.output["usage"] for turn in turns_of(journal) if turn.output]
    costs = [usage["costUsd"] for usage in usages]
    total: dict[str, Any] = {
        "turns": len(usages),
        "inputTokens": sum(usage["inputTokens"] for usage in usages),
        "outputTokens": sum(usage["outputTokens"] for usage in usages),
        "costUsd": None if None in costs else round(sum(costs), 6),
    }
    for name in ("cacheReadTokens", "cacheWriteTokens"):
        if count := sum(usage.get(name, 0) for usage in usages):
            total[name] = count
    return total | ({"estimated": True} if any("estimated" in usage for usage in usages) else {})


def is_budget_exhausted(usage: dict[str, Any]) -> bool:
    """Return whether AGENT_MAX_TOKENS or AGENT_MAX_COST_USD is reached: no further turn starts."""
    max_cost, cost = settings.AGENT_MAX_COST_USD, usage["costUsd"]
    if usage["inputTokens"] + usage["outputTokens"] >= settings.AGENT_MAX_TOKENS:
        return True
    return max_cost is not None and cost is not None and cost >= max_cost
