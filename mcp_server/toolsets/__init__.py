"""Toolsets, one a file: each defines TOOLS (see mcp_server/tools/registry.py)."""
