"""The toolset `targets`: the tools of the runners that the caller may use, run as direct calls."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from decisions.identity.principals import Principal
from mcp_server.protocol.progress import TextProgress
from mcp_server.tools.registry import McpTool, McpToolCall, Schema
from runners.remote_tools.catalogue import OfferedTool, list_offered
from runners.remote_tools.model_facing import (
    ModelFacingTool,
    choose_runner,
    describe_tool,
    model_facing_tools,
    schema_with_runner_choice,
)
from runners.targets.targets import Caller
from runs.calls.direct.call import call_tool
from runs.calls.request import DirectCallRequest
from runs.streaming.long_poll import WAIT_MAX_MS

META = "continuity"  # key in _meta: the tool's name on its runners, and their target ids
MAX_LISTED = 128
LIST_BYTES = 128 * 1024
_DESCRIPTION_MAX = 1000
_TIME_LIMIT_NOTE = "Limit 55 s: for longer work start call_tools with run_task_template."

OUTPUT: Schema = {
    "type": "object",
    "properties": {
        "output": {"description": "The output of the runner's tool: any value."},
        "targetId": {"type": "string"},
        "callId": {"type": "string", "description": "The id of the call in the audit log."},
        "truncated": {
            "type": "boolean",
            "description": "The output is cut: artifactId has all of it (get_artifact).",
        },
        "artifactId": {"type": "string"},
        "fellBackFrom": {
            "type": "string",
            "description": "The unreachable runner in whose place this server ran the tool.",
        },
    },
    "required": ["output", "targetId", "callId"],
}


def tools_of_targets(principal: Principal, taken: Collection[str]) -> dict[str, McpTool]:
    """Return the tools of the caller's runners by their MCP name.

    Listed are at most MAX_LISTED of those that policy allows, with or without a confirmation.
    Beyond LIST_BYTES of schemas in all, a tool's schema is replaced by one of any object.

    Args:
        principal: The caller; without the scope `tools:write` it has no such tools.
        taken: Names of other tools, which the returned ones must not have.
    """
    if "tools:write" not in principal.scopes:
        return {}
    offered = list_offered(Caller.of(principal))
    published = model_facing_tools(
        offered, taken=taken, at_most=MAX_LISTED, schema_bytes=LIST_BYTES
    )
    return {name: _tool(name, one) for name, one in published.items()}


def _tool(name: str, published: ModelFacingTool) -> McpTool:
    tool = published.tool
    return McpTool(
        name=name,
        title=tool.name,
        description=describe_tool(tool, at_most=_DESCRIPTION_MAX, more=_TIME_LIMIT_NOTE),
        input_schema=schema_with_runner_choice(tool),
        output_schema=OUTPUT,
        handler=partial(_call, tool),
        # Hosts use hints to skip confirmations: do not derive them from what a runner declares.
        destructive=True,
        open_world=True,
        is_direct_call=True,
        meta={META: {"tool": tool.name, "targets": [on.target_id for on in tool.targets]}},
        is_listed=published.is_shown,
    )


async def _call(tool: OfferedTool, call: McpToolCall) -> dict[str, Any]:
    args = dict(call.arguments)
    target = choose_runner(tool, args)
    progress = TextProgress(call.progress)

    await call.progress(0, 0, f"{tool.name} on {target.target_name}")
    request = DirectCallRequest(
        tool.name,
        args,
        target_id=target.target_id,
        timeout_ms=max(1, WAIT_MAX_MS - int(call.elapsed_s * 1000)),
        on_update=progress.add,
    )
    try:
        result = await call_tool(principal=call.principal, request=request)
    finally:
        await progress.close()
    details = {"targetId": target.target_id, "callId": result.call_id, **result.marks}
    return {"output": result.output, **details}


TOOLS = ()
CALLER_TOOLS = tools_of_targets
