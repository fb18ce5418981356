"""Invoke tools: validate the arguments, limit the time, call the tool, return one kind of result.

The caller (the engine, a direct call) authorizes the call first.
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

from decisions.foundation.errors import Refused
from decisions.foundation.infra.ids import new_id
from decisions.foundation.infra.trace_context import child_span
from decisions.foundation.security.logs import hiding
from decisions.foundation.security.masking import Masker, WholeSecrets
from decisions.foundation.validation.model_errors import first_error
from runners import metrics
from runners.errors import InvalidTarget, ToolFailed, ToolTimeout
from runners.gateway.request import RunnerCallContext, RunnerTarget, Update
from runners.invocation.fallback import with_fallback
from runners.tools.base import Effect, Tool, ToolCall, ToolContext, ToolResult
from runners.tools.registry import get_tool
from runners.workspace.errors import BadArguments, WorkspaceTimeout

Output = Mapping[str, Any]
Outcome = TypeVar("Outcome")


async def invoke(call: ToolCall, ctx: ToolContext) -> ToolResult:
    """Call a tool and return its result; a tool that fails is a result, not an exception.

    The call ends at the tool's timeout or at the context's deadline, whichever is first. The
    timeout of a tool that opens a browser starts once the browser has started. A call that is
    canceled but cannot stop (a write to disk) is awaited and its result is returned; the caller
    then calls `raise_if_interrupted`. Unexpected exceptions pass through: they are defects.
    """
    if ctx.runner is not None:
        return await _invoke_on_runner(call, ctx, ctx.runner)
    if ctx.paired_browser is not None:
        # Imported here so that processes that use no person's browser load none of its models.
        from runners.invocation.paired_browser import invoke_in_paired_browser

        return await invoke_in_paired_browser(call, ctx, ctx.paired_browser)
    return await _invoke_local(call, ctx)


async def _invoke_local(call: ToolCall, ctx: ToolContext) -> ToolResult:
    tool = get_tool(call.name)
    if tool is None:
        return _failed(InvalidTarget(f"There is no tool {call.name[:64]}."))
    try:
        args = tool.input_model.model_validate(dict(call.args))
    except ValidationError as error:
        wrong = BadArguments if tool.kind == "workspace" else InvalidTarget
        return _failed(wrong(first_error(error)))
    try:
        if tool.opens_browser and ctx.browser is not None:
            with contextlib.suppress(TimeoutError):  # _execute reports that no time is left
                await _within(ctx.deadline, ctx.browser.ready())
        return ToolResult(ok=True, output=await _execute(tool, args, call, ctx))
    except (ToolFailed, Refused) as failed:
        return _failed(failed)


async def _execute(tool: Tool, args: BaseModel, call: ToolCall, ctx: ToolContext) -> Output:
    """Call the tool's function within its time limit.

    Raises:
        ToolFailed: The tool failed or exceeded its time limit.
    """
    limit_ms = min(tool.timeout_ms, math.ceil((ctx.deadline - time.monotonic()) * 1000))
    if limit_ms <= 0:
        message = f"{tool.name} was not started: no time was left for it."
        raise _timed_out(tool, message, effect="none")
    deadline = min(ctx.deadline, time.monotonic() + tool.timeout_ms / 1000)
    try:
        return await _within(deadline, tool.function(args, replace(ctx, deadline=deadline)))
    except TimeoutError:
        message = f"{tool.name} did not finish within {limit_ms} ms."
        is_preview = call.args.get("dryRun") is True
        raise _timed_out(tool, message, effect="none" if is_preview else "unknown") from None


async def _invoke_on_runner(call: ToolCall, ctx: ToolContext, runner: RunnerTarget) -> ToolResult:
    """Send a call to a runner, and emit its updates while it executes."""
    # Imported here so that processes that call no runner do not load the HTTP client.
    from runners.gateway.client import call_runner

    call_id, tokens = new_id("tool_"), [runner.auth_token] if runner.auth_token else []
    token, whole = Masker(tokens), WholeSecrets(tokens)

    def emit_update(update: Update) -> None:
        at = update.at or datetime.now(UTC).isoformat(timespec="milliseconds")
        if delta := whole.add(update.delta):
            data = {"toolCallId": call_id, "delta": ctx.mask(delta), "at": at}
            ctx.emit("tool.update", token.value(data))

    context = RunnerCallContext(
        run_id=ctx.run_id,
        session_id=ctx.session_id,
        runtime_mode=ctx.trust,
        tool_call_id=call_id,
        deadline=ctx.deadline,
        on_update=emit_update,
        traceparent=child_span(ctx.traceparent) if ctx.traceparent else None,
    )
    with hiding(token):  # a runner may send the token back
        result = await metrics.runner_call(call_runner(call, context, runner))
    if rest := whole.rest():
        emit_update(Update(rest, None))
    result = ToolResult(result.ok, token.value(result.output), token.value(result.error))
    return with_fallback(call.name, result, runner)


def raise_if_interrupted() -> None:
    """Raise if this task was canceled while it waited for a call.

    Raises:
        CancelledError: The task was canceled.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def _within(deadline: float, call: Awaitable[Outcome]) -> Outcome:
    """Await a call; cancel it at the deadline, or when this task is canceled.

    Raises:
        TimeoutError: The deadline passed, and the call ended without a result.
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


def _timed_out(tool: Tool, message: str, *, effect: str) -> ToolFailed:
    details = {} if tool.effect == Effect.READ else {"effect": effect}
    kind = WorkspaceTimeout if tool.kind == "workspace" else ToolTimeout
    return kind(message, details=details)


def _failed(failed: ToolFailed | Refused) -> ToolResult:
    return ToolResult(ok=False, error=failed.as_dict())
