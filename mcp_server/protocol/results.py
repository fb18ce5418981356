"""What a tool call is answered with: the one place where our errors become MCP's (mechanisms 17).

An error is JSON in one text block with isError and without structuredContent, which some clients
check against the output schema even then. A run that failed is no error of the call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import mcp_types as types
import orjson
from mcp.shared.exceptions import MCPError
from mcp_types.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from decisions.errors import NotFound, Refused, as_dict
from decisions.infra.ids import new_id

NOT_FOUND = -32002  # what revisions with a handshake call a resource that is not there
Tell = Callable[[Refused], Mapping[str, Any]]
log = logging.getLogger(__name__)


def success(answer: Mapping[str, Any]) -> types.CallToolResult:
    """Return an answer as structured content and as the same JSON in a text block."""
    return types.CallToolResult(content=[_json(answer)], structured_content=answer)


def refusal(refused: Refused, *, tell: Tell = as_dict) -> types.CallToolResult:
    """Return a refusal in the one error shape, or in that of the tool's own seed."""
    return types.CallToolResult(content=[_json(tell(refused))], is_error=True)


def malfunction(tool: str, error: Exception, *, tell: Tell = as_dict) -> types.CallToolResult:
    """Log an error of ours under an id and return the id alone: nothing of the error is shown."""
    return refusal(_under_id(tool, error), tell=tell)


def resource_error(refused: Refused, revision: str) -> MCPError:
    """Return a refused reading as the protocol error of a revision, its data in our shape."""
    is_missing = isinstance(refused, NotFound)
    code = NOT_FOUND if is_missing and revision in HANDSHAKE_PROTOCOL_VERSIONS else INVALID_PARAMS
    return MCPError(code, refused.message, refused.as_dict())


def resource_malfunction(error: Exception) -> MCPError:
    """Do the same as `malfunction` for a reading."""
    told = _under_id("resources", error)
    return MCPError(INTERNAL_ERROR, told.message, told.as_dict())


def _under_id(what: str, error: Exception) -> Refused:
    error_id = new_id("err_")
    log.error("a call failed", exc_info=error, extra={"tool": what, "error_id": error_id})
    return Refused(
        f"{what} failed by an error of this server; its log tells more under {error_id}.",
        details={"errorId": error_id},
    )


def _json(value: Mapping[str, Any]) -> types.TextContent:
    return types.TextContent(text=orjson.dumps(value).decode())
