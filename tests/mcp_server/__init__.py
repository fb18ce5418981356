"""Tests of `mcp_server/`."""
