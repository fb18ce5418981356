"""MCP over HTTP: `/mcp` (streamable HTTP), and `/sse` with `/messages/` for older clients.

The ASGI dispatcher uses only `lazy_loading.py`, which imports the rest, with the SDK, at the first
request.
"""
