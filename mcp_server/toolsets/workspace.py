"""The toolset `workspace`: the S4 tools for a project's files, scenes and snapshots."""

from __future__ import annotations

from mcp_server.tools.workspace_tools import workspace_tools

TOOLS = workspace_tools(developer=False)
