"""The toolset `targets`: what runners offer, which is another list for every caller."""

from __future__ import annotations

from mcp_server.tools.runner_tools import tools_of_targets

TOOLS = ()
CALLER_TOOLS = tools_of_targets
