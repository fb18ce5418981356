"""The toolset `workspace`: the S4 tools for a project's files, scenes and snapshots, with the names
and schemas of the seed, run as direct calls.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from mcp_server.tools.registry import McpTool, McpToolCall, Schema
from runners.invocation.arguments import input_schema
from runners.invocation.workspace_errors import as_workspace_error
from runners.tools.base import Effect, Tool
from runners.tools.registry import list_tools
from runs.calls.direct.call import call_tool
from runs.calls.request import DirectCallRequest

_ALTERNATIVES = frozenset({"oneOf", "anyOf", "allOf"})
_OVERWRITING = frozenset({"write_to_file", "replace_in_file", "generate_character_profile"})


def workspace_tools(*, developer: bool) -> tuple[McpTool, ...]:
    """Return the developer tools, or all other workspace tools."""
    return tuple(_tool(tool) for tool in list_tools("workspace") if tool.developer == developer)


def _tool(tool: Tool) -> McpTool:
    reads = tool.effect == Effect.READ
    return McpTool(
        name=tool.name,
        description=" ".join(tool.description.split()),
        input_schema=_advertised(input_schema(tool)),
        output_schema=dict(tool.response or {"type": "object"}),
        handler=partial(_call, tool.name),
        read_only=reads,
        destructive=tool.name in _OVERWRITING or (tool.developer and not reads),
        open_world=tool.developer or tool.uses_browser,
        needs_stack=tool.uses_browser,
        is_direct_call=True,
        refusal_as_dict=as_workspace_error,
    )


async def _call(name: str, call: McpToolCall) -> dict[str, Any]:
    request = DirectCallRequest(name, call.arguments, offered=call.tool_names)
    return dict((await call_tool(principal=call.principal, request=request)).output)


def _advertised(schema: Schema) -> Schema:
    """Return the schema for tools/list: without oneOf, anyOf and allOf at its root, which some
    hosts do not accept there. The handler enforces them.
    """
    return {key: value for key, value in schema.items() if key not in _ALTERNATIVES}


TOOLS = workspace_tools(developer=False)
