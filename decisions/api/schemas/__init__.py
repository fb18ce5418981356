"""JSON Schemas of the Continuity API, the same for REST and MCP."""
