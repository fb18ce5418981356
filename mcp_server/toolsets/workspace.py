"""The toolset `workspace`: S4's tools for the files of a project, its scenes and its snapshots."""

from __future__ import annotations

from mcp_server.tools.workspace_tools import workspace_tools

TOOLS = workspace_tools(developer=False)
