"""What a tool call is answered with: the one place where our errors become MCP's (mechanisms 17).

An error is JSON in one text block with isError and without structuredContent, which some clients
check against the output schema even then. A run that failed is no error of the call.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import mcp_types as types
import orjson

from decisions.errors import Refused
from decisions.ids import new_id

log = logging.getLogger(__name__)


def success(answer: Mapping[str, Any]) -> types.CallToolResult:
    """Return an answer as structured content and as the same JSON in a text block."""
    return types.CallToolResult(content=[_json(answer)], structured_content=answer)


def refusal(refused: Refused) -> types.CallToolResult:
    """Return a refusal in the one error shape."""
    return types.CallToolResult(content=[_json(refused.as_dict())], is_error=True)


def malfunction(tool: str, error: Exception) -> types.CallToolResult:
    """Log an error of ours under an id and return the id alone: nothing of the error is shown."""
    error_id = new_id("err_")
    log.error("tool call failed", exc_info=error, extra={"tool": tool, "error_id": error_id})
    return refusal(
        Refused(
            f"{tool} failed by an error of this server; its log tells more under {error_id}.",
            details={"errorId": error_id},
        )
    )


def _json(value: Mapping[str, Any]) -> types.TextContent:
    return types.TextContent(text=orjson.dumps(value).decode())
