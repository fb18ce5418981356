"""Tests of `mcp_server/stdio/`."""
