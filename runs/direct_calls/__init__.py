"""Direct tool calls, made outside of a run through REST or MCP."""
