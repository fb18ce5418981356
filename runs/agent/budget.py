"""The model usage of an agent run (turns, tokens, cost), and its limits."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from runners.llm.base import Usage
from runs.agent.journal_view import SUMMARY, Journal, turns_of


def counts_of(usage: Usage) -> dict[str, Any]:
    """Return the usage of one request as the journal stores it."""
    counts: dict[str, Any] = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "costUsd": usage.cost_usd,
    }
    if usage.cache_read_tokens or usage.cache_write_tokens:
        counts["cacheReadTokens"] = usage.cache_read_tokens
        counts["cacheWriteTokens"] = usage.cache_write_tokens
    return counts | ({"estimated": True} if usage.is_estimated else {})


def usage_of(journal: Journal) -> dict[str, Any]:
    """Return {turns, inputTokens, outputTokens, cacheReadTokens?, cacheWriteTokens?, costUsd,
    estimated?}, summed over the run's turns and summaries.

    Input tokens include those of the server's prompt cache. costUsd is None if the cost of any turn
    is unknown.
    """
    turns = [turn for turn in turns_of(journal) if turn.output]
    summaries = [entry for entry in journal if entry.input["kind"] == SUMMARY]
    usages = [entry.output["usage"] for entry in (*turns, *summaries) if entry.output]
    costs = [usage["costUsd"] for usage in usages]
    total: dict[str, Any] = {
        "turns": len(turns),
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
