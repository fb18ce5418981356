"""Tools of runners as MCP has them: the list, and the one direct call."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from decisions.identity.principals import Principal
from mcp_server.protocol.progress import TextProgress
from mcp_server.tools.registry import McpTool, McpToolCall, Schema
from runners.remote_tools.catalogue import OfferedTool, list_offered
from runners.remote_tools.model_facing import ToldTool, chosen, described, told_tools, with_choice
from runners.targets.targets import Caller
from runs.direct_calls.calls import call_tool
from runs.direct_calls.request import DirectCallRequest

META = "continuity"  # of a listed tool: what it is called out there, and who offers it
MAX_LISTED = 128
LIST_BYTES = 128 * 1024
LIMIT_MS = 55_000  # no call of MCP blocks longer (product.md, "MCP")
_DESCRIPTION_MAX = 1000
_LIMIT_TOLD = "It has 55 s: for longer work start call_tools with run_task_template."

OUTPUT: Schema = {
    "type": "object",
    "properties": {
        "output": {"description": "What the runner's tool answered: any value."},
        "targetId": {"type": "string"},
        "callId": {"type": "string", "description": "What the audit log names the call."},
        "truncated": {
            "type": "boolean",
            "description": "The output is shortened: artifactId has the whole (get_artifact).",
        },
        "artifactId": {"type": "string"},
        "fellBackFrom": {
            "type": "string",
            "description": "The runner that was not reached; a tool of this server did it.",
        },
    },
    "required": ["output", "targetId", "callId"],
}


def tools_of_targets(principal: Principal, taken: Collection[str]) -> dict[str, McpTool]:
    """Return the tools that the caller's runners offer by their names on the wire; `taken` are
    those of our own tools. Listed are those that policy lets be called, at once or once a person
    agreed: at most MAX_LISTED, with LIST_BYTES of schemas in all.
    """
    if "tools:write" not in principal.scopes:
        return {}
    offered = list_offered(Caller.of(principal))
    told = told_tools(offered, taken=taken, at_most=MAX_LISTED, schema_bytes=LIST_BYTES)
    return {wire: _tool(wire, one) for wire, one in told.items()}


def _tool(wire: str, told: ToldTool) -> McpTool:
    tool = told.tool
    return McpTool(
        name=wire,
        title=tool.name,
        description=described(tool, at_most=_DESCRIPTION_MAX, more=_LIMIT_TOLD),
        input_schema=with_choice(tool),
        output_schema=OUTPUT,
        handler=partial(_call, tool),
        # Hints are for hosts that ask their user less; what a runner says of itself is no reason.
        destructive=True,
        open_world=True,
        validates_arguments=True,
        audits_refusals=True,
        meta={META: {"tool": tool.name, "targets": [on.target_id for on in tool.targets]}},
        is_listed=told.is_shown,
    )


async def _call(tool: OfferedTool, call: McpToolCall) -> dict[str, Any]:
    args = dict(call.arguments)
    target = chosen(tool, args)
    progress = TextProgress(call.progress)

    await call.progress(0, 0, f"{tool.name} on {target.target_name}")
    request = DirectCallRequest(
        tool.name,
        args,
        target_id=target.target_id,
        timeout_ms=max(1, LIMIT_MS - int(call.spent_s * 1000)),
        on_update=progress.say,
    )
    try:
        answered = await call_tool(principal=call.principal, request=request)
    finally:
        await progress.close()
    told = {"targetId": target.target_id, "callId": answered.call_id, **answered.marks}
    return {"output": answered.output, **told}
