"""The MCP server: the tools, resources and transports that agent hosts use."""
