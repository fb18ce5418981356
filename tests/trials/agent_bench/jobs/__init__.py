"""Twenty jobs that an MCP host does, with the calls and bytes that they cost."""
