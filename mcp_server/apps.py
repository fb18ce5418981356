"""The Django application of the door for agent hosts."""

from __future__ import annotations

from django.apps import AppConfig


class McpServerConfig(AppConfig):
    """MCP over stdio."""

    name = "mcp_server"
