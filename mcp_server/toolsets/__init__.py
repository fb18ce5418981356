"""Toolsets, one a file: each defines TOOLS (see mcp_server/tools.py)."""
