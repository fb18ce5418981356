"""The part of MCP that is the same on every transport: parsing, results, progress, resources."""
