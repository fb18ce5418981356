"""The stdio transport of MCP, for agent hosts that start `manage.py mcp_stdio`."""
