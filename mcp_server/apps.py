"""The Django application of the MCP server."""

from __future__ import annotations

from django.apps import AppConfig


class McpServerConfig(AppConfig):
    """The MCP server, over stdio and over HTTP."""

    name = "mcp_server"
