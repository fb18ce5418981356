"""The toolset `developer`: the S4 tools that run a project's scripts and open its pages."""

from __future__ import annotations

from mcp_server.toolsets.workspace import workspace_tools

TOOLS = workspace_tools(developer=True)
