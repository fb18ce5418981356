"""The toolset `browser`: the browser actions, for hosts with a model of their own."""

from __future__ import annotations

from mcp_server.tools.browser_tools import browser_tools

TOOLS = browser_tools()
