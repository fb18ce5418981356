"""Direct tool calls: calls through REST or MCP that belong to no run of the caller."""
