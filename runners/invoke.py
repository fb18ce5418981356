"""The one door to tools: validate, bound in time, call, and say what came of it in one shape.

Policy is asked by the caller (runs.engine, direct calls) before it comes here.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from pydantic import ValidationError

from runners.base import Tool, ToolCall, ToolContext, ToolResult
from runners.errors import InvalidTarget, ToolFailed, ToolTimeout
from runners.registry import get_tool
from runners.workspace.errors import BadArguments, TooSlow


async def invoke(call: ToolCall, ctx: ToolContext) -> ToolResult:
    """Call a tool and return its result; a tool that fails is a result, not an exception.

    The call ends at the tool's own timeout or at the context's deadline, whichever is first. An
    exception that no tool should let out passes through: it is a defect, and the engine tells it as
    one.
    """
    tool = get_tool(call.name)
    if tool is None:
        return _failed(InvalidTarget(f"There is no tool {call.name[:64]}."))
    try:
        args = tool.input_model.model_validate(dict(call.args))
    except ValidationError as error:
        wrong = BadArguments if tool.kind == "workspace" else InvalidTarget
        return _failed(wrong(_first(error)))
    deadline = min(ctx.deadline, time.monotonic() + tool.timeout_ms / 1000)
    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            output = await tool.function(args, replace(ctx, deadline=deadline))
    except TimeoutError:
        return _failed(_too_slow(tool))
    except ToolFailed as failed:
        return _failed(failed)
    return ToolResult(ok=True, output=output)


def _too_slow(tool: Tool) -> ToolFailed:
    told = f"{tool.name} did not end within its {tool.timeout_ms} ms."
    return TooSlow(told) if tool.kind == "workspace" else ToolTimeout(told)


def _failed(failed: ToolFailed) -> ToolResult:
    return ToolResult(ok=False, error=failed.as_dict())


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:300]
