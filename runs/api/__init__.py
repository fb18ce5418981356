"""REST views and schemas of runs, events, sessions, tasks, tool calls and webhooks."""
