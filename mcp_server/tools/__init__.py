"""MCP tools: their definition, the loading of toolsets, and tools that depend on the caller."""
