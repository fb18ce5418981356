"""JSON Schemas of runs, tasks, sessions, tools and webhooks, the same for REST and MCP."""
