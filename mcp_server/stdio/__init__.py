"""The stdio transport of MCP, for an agent host that starts `manage.py mcp_stdio`."""
