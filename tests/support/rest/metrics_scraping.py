"""Read and change the metrics that /metrics exposes."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from runners import metrics
from runners.errors import ToolFailed
from runners.tools.base import ToolResult
from runs.operations.health import publisher

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def reset_metrics() -> None:
    """Reset the metrics of this process and in Redis."""
    metrics.drain()
    publisher._redis._closed.clear()
    publisher._redis.execute(lambda redis: redis.delete(publisher._key("")))


def metric_value(samples: Samples, name: str, **labels: str) -> float:
    """Return the value of one time series, which must exist."""
    return samples[f"continuity_{name}", frozenset(labels.items())]


def failed_call(reason: str) -> ToolResult:
    """Return the result of a failed runner call."""
    return ToolResult(ok=False, error={"message": "m", "details": {"reason": reason}})


def count_runner_calls(*results: ToolResult) -> list[ToolResult]:
    """Count runner calls with these results; return the results that the callers received."""

    async def answer(result: ToolResult) -> ToolResult:
        return result

    async def call_all() -> list[ToolResult]:
        return [await metrics.runner_call(answer(result)) for result in results]

    return asyncio.run(call_all())


def count_model_turn(failed: ToolFailed | None = None) -> None:
    """Count a model turn with 100 input tokens and 20 output tokens, or a failed turn."""
    with suppress(ToolFailed), metrics.model_turn() as record_tokens:
        if failed is not None:
            raise failed
        record_tokens(100, 20)


def runs_in_status(samples: Samples, status: str) -> float:
    """Return how many runs of the test template the metrics report in a status."""
    return metric_value(samples, "runs", template="test_stepwise", status=status)
