"""The toolset `targets`: the tools of the runners that the caller may use."""

from __future__ import annotations

from mcp_server.tools.runner_tools import tools_of_targets

TOOLS = ()
CALLER_TOOLS = tools_of_targets
