"""Direct calls of tools, outside of a run: what REST and MCP hand over (runners.md, "Tools")."""
