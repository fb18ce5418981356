"""What an MCP tool is, how toolsets are found, and tools whose list depends on the caller."""
