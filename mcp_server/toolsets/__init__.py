"""Toolsets, one per module: each defines TOOLS (see mcp_server/tools/registry.py)."""
