"""The MCP server without its transports: input checks, results, progress, resources."""
