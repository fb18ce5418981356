"""Call runners through the gateway, as a worker does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from runners.gateway.client import call_runner
from runners.gateway.connections import close_pool
from runners.gateway.request import RunnerCallContext, RunnerTarget, Update
from runners.tools.base import ToolCall, ToolResult

LONG_TIMEOUT_MS = 60_000  # for calls that must end before the timeout


def target_at(endpoint: str | None, **more: Any) -> RunnerTarget:
    """Return a target at an endpoint."""
    default = RunnerTarget(
        "target_stub", "t_default", "w_default", endpoint, timeout_ms=LONG_TIMEOUT_MS
    )
    return replace(default, **more)


def call_context(
    on_update: Callable[[Update], None] | None = None, **more: Any
) -> RunnerCallContext:
    """Return the context of a call: a run of a local caller, with a distant deadline."""
    default = RunnerCallContext(
        run_id="run_a",
        session_id="sess_a",
        runtime_mode="local",
        tool_call_id="tool_a",
        deadline=time.monotonic() + 600,
        on_update=on_update or (lambda update: None),
    )
    return replace(default, **more)


def call(
    endpoint: str | None,
    *,
    times: int = 1,
    ctx: RunnerCallContext | None = None,
    args: dict[str, Any] | None = None,
    **target: Any,
) -> ToolResult:
    """Call `bash.exec` on a runner `times` times in sequence; return the last result."""

    async def calls() -> ToolResult:
        try:
            for _ in range(times):
                result = await call_runner(
                    ToolCall("bash.exec", {"cmd": "printf hello"} if args is None else args),
                    ctx or call_context(),
                    target_at(endpoint, **target),
                )
            return result
        finally:
            await close_pool()

    return asyncio.run(calls())


def failure_details(result: ToolResult) -> dict[str, Any]:
    """Return the details of a failed runner call; check that its code is TOOL_EXEC_FAILED."""
    error = dict(result.error or {})
    assert (result.ok, error.get("errorCode")) == (False, "TOOL_EXEC_FAILED"), error
    details: dict[str, Any] = error["details"]
    return details
