"""Results of tool calls, and the mapping of our errors to MCP's.

A tool error is JSON in one text block with isError and without structuredContent, because some
clients validate structuredContent against the output schema even in an error. A failed run is a
successful result of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mcp_types as types
import orjson
from mcp.shared.exceptions import MCPError
from mcp_types.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from decisions.foundation.errors import NotFound, Refused, as_dict
from decisions.foundation.unexpected_errors import log_unexpected
from runners.untrusted_text import fence_error

RESOURCE_NOT_FOUND = -32002  # the error code in protocol versions that have a handshake
RefusalAsDict = Callable[[Refused], Mapping[str, Any]]


def success_result(output: Mapping[str, Any]) -> types.CallToolResult:
    """Return a tool's output as structured content and as the same JSON in a text block."""
    return types.CallToolResult(content=[_json(output)], structured_content=output)


def refusal_result(
    refused: Refused, *, refusal_as_dict: RefusalAsDict = as_dict
) -> types.CallToolResult:
    """Return a refusal as a tool error, in our common error shape or in that of the tool's seed."""
    body = fence_error(refusal_as_dict(refused))
    return types.CallToolResult(content=[_json(body)], is_error=True)


def internal_error_result(
    tool: str, error: Exception, *, refusal_as_dict: RefusalAsDict = as_dict
) -> types.CallToolResult:
    """Log an unexpected error and return a tool error that names only its error id."""
    return refusal_result(log_unexpected(error, call=tool), refusal_as_dict=refusal_as_dict)


def resource_error(refused: Refused, protocol_version: str) -> MCPError:
    """Return a refusal to read a resource as a protocol error, with our error shape as its data."""
    if isinstance(refused, NotFound) and protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        return MCPError(RESOURCE_NOT_FOUND, refused.message, refused.as_dict())
    return MCPError(INVALID_PARAMS, refused.message, refused.as_dict())


def resource_internal_error(error: Exception) -> MCPError:
    """Log an unexpected error and return a protocol error that names only its error id."""
    refused = log_unexpected(error, call="Reading a resource")
    return MCPError(INTERNAL_ERROR, refused.message, refused.as_dict())


def _json(value: Mapping[str, Any]) -> types.TextContent:
    return types.TextContent(text=orjson.dumps(value).decode())
