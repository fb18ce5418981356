"""The floor of an MCP call over stdio: a server of the SDK with fixed answers, which it reads at
its start from the file that argv names, {tool: answer}."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import mcp_types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

ANSWERS: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text()) if len(sys.argv) > 1 else {}


async def list_tools(ctx: Any, params: Any) -> mcp_types.ListToolsResult:
    """List the tools."""
    tools = [mcp_types.Tool(name=name, input_schema={"type": "object"}) for name in ANSWERS]
    return mcp_types.ListToolsResult(tools=tools)


async def call_tool(ctx: Any, params: Any) -> mcp_types.CallToolResult:
    """Answer as our server does: the structured content, and the same as text."""
    answer = ANSWERS[params.name]
    text = mcp_types.TextContent(text=json.dumps(answer))
    return mcp_types.CallToolResult(content=[text], structured_content=answer)


async def main() -> None:
    """Serve until stdin closes."""
    server: Any = Server("floor", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
