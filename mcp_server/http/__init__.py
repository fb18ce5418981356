"""MCP over HTTP: `/mcp` streamable, and `/sse` with `/messages/` for older clients.

`late.py` stands in the ASGI dispatcher and loads the rest, with the SDK, at the first call.
"""
