"""Tests of `mcp_server/protocol/`."""
