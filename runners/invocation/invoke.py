"""The one door to tools: validate, bound in time, call, and say what came of it in one shape.

Policy is asked by the caller (runs.execution.engine, direct calls) before it comes here.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from decisions.infra.ids import new_id
from decisions.infra.trace_context import child_span
from runners import metrics
from runners.errors import InvalidTarget, ToolFailed, ToolTimeout
from runners.gateway.request import CallContext, RunnerTarget, Update
from runners.invocation.fallback import with_fallback
from runners.tools.base import Effect, Tool, ToolCall, ToolContext, ToolResult
from runners.tools.registry import get_tool
from runners.workspace.errors import BadArguments, WorkspaceTimeout

Output = Mapping[str, Any]
Outcome = TypeVar("Outcome")


async def invoke(call: ToolCall, ctx: ToolContext) -> ToolResult:
    """Call a tool and return its result; a tool that fails is a result, not an exception.

    The call ends at the tool's own timeout or at the context's deadline, whichever is first; the
    timeout of one that opens a browser begins when that is there. One that is interrupted and
    cannot stop (a write on the disk) is awaited, and returned as what it came to: the caller then
    sees to the interrupt (`raise_if_interrupted`). An exception that no tool should let out passes
    through: it is a defect, and the engine tells it as one.
    """
    if ctx.runner is not None:
        return await _on_runner(call, ctx, ctx.runner)
    return await _here(call, ctx)


async def _here(call: ToolCall, ctx: ToolContext) -> ToolResult:
    tool = get_tool(call.name)
    if tool is None:
        return _failed(InvalidTarget(f"There is no tool {call.name[:64]}."))
    try:
        args = tool.input_model.model_validate(dict(call.args))
    except ValidationError as error:
        wrong = BadArguments if tool.kind == "workspace" else InvalidTarget
        return _failed(wrong(_first(error)))
    try:
        if tool.opens_browser and ctx.browser is not None:
            with contextlib.suppress(TimeoutError):  # then no time is left for the call itself
                await _within(ctx.deadline, ctx.browser.ready())
        return ToolResult(ok=True, output=await _performed(tool, args, call, ctx))
    except ToolFailed as failed:
        return _failed(failed)


async def _performed(tool: Tool, args: BaseModel, call: ToolCall, ctx: ToolContext) -> Output:
    """Call a tool's function within its time.

    Raises:
        ToolFailed: It failed, or did not end in time.
    """
    limit_ms = min(tool.timeout_ms, math.ceil((ctx.deadline - time.monotonic()) * 1000))
    if limit_ms <= 0:
        told = f"{tool.name} was not begun: there was no time left for it."
        raise _too_slow(tool, told, effect="none")
    deadline = min(ctx.deadline, time.monotonic() + tool.timeout_ms / 1000)
    try:
        return await _within(deadline, tool.function(args, replace(ctx, deadline=deadline)))
    except TimeoutError:
        told = f"{tool.name} did not end within {limit_ms} ms."
        is_preview = call.args.get("dryRun") is True
        raise _too_slow(tool, told, effect="none" if is_preview else "unknown") from None


async def _on_runner(call: ToolCall, ctx: ToolContext, runner: RunnerTarget) -> ToolResult:
    """Have a runner elsewhere perform a call, and tell its updates as they come."""
    # Late: no door pays for an HTTP client at its start.
    from runners.gateway.client import call_runner

    call_id = new_id("tool_")

    def tell(update: Update) -> None:
        at = update.at or datetime.now(UTC).isoformat(timespec="milliseconds")
        ctx.emit("tool.update", {"toolCallId": call_id, "delta": ctx.mask(update.delta), "at": at})

    whose = CallContext(
        run_id=ctx.run_id,
        session_id=ctx.session_id,
        runtime_mode=ctx.trust,
        tool_call_id=call_id,
        deadline=ctx.deadline,
        on_update=tell,
        traceparent=child_span(ctx.traceparent) if ctx.traceparent else None,
    )
    result = await metrics.runner_call(call_runner(call, whose, runner))
    return with_fallback(call.name, result, runner)


def raise_if_interrupted() -> None:
    """End a task that was interrupted while it waited for a call.

    Raises:
        CancelledError: It was.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def _within(deadline: float, call: Awaitable[Outcome]) -> Outcome:
    """Return what a call returns; interrupt it when its time is over, or when this task is
    interrupted.

    Raises:
        TimeoutError: Its time was over, and it ended without a result.
    """
    working = asyncio.ensure_future(call)
    try:
        await asyncio.wait({working}, timeout=max(0.0, deadline - time.monotonic()))
        if working.done():
            return working.result()
        working.cancel()
        await asyncio.wait({working})
    except asyncio.CancelledError:
        working.cancel()
        await asyncio.wait({working})
        if working.cancelled() or working.exception() is not None:
            raise
    if working.cancelled():
        raise TimeoutError
    return working.result()


def _too_slow(tool: Tool, told: str, *, effect: str) -> ToolFailed:
    details = {} if tool.effect == Effect.READ else {"effect": effect}
    kind = WorkspaceTimeout if tool.kind == "workspace" else ToolTimeout
    return kind(told, details=details)


def _failed(failed: ToolFailed) -> ToolResult:
    return ToolResult(ok=False, error=failed.as_dict())


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:300]
