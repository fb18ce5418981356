"""The toolset `developer`: the S4 tools that run a project's scripts and open its pages."""

from __future__ import annotations

from mcp_server.tools.workspace_tools import workspace_tools

TOOLS = workspace_tools(developer=True)
