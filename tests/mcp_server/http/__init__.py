"""Tests of `mcp_server/http/`."""
