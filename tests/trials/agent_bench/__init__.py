"""Measure agents: forty tasks for the agent of a run, twenty jobs for an MCP host."""
