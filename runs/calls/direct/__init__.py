"""A tool call over REST or MCP outside a run, and an action of an agent host."""
