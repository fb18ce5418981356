"""Batches of JSON-RPC, which only the protocol version 2025-03-26 has, and requires."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import (
    INVALID_REQUEST,
    PARSE_ERROR,
    JSONRPCError,
    JSONRPCRequest,
)

from decisions.foundation.errors import Refused, TooManyRequests
from decisions.foundation.validation.json_input import CALL_LIMIT, load_json
from mcp_server.protocol.message_parser import error_response, parse_message

BATCH_VERSION = "2025-03-26"
MAX_MESSAGES = 50


def is_batch(protocol_version: str, body: bytes) -> bool:
    """Return whether the body is a list, and the client's version may have batches.

    Clients of that version are not required to send the MCP-Protocol-Version header.
    """
    return protocol_version in ("", BATCH_VERSION) and body.lstrip()[:1] == b"["


def parse_batch(
    body: bytes, throttle: Callable[[], None]
) -> list[SessionMessage | JSONRPCError] | JSONRPCError:
    """Return each message, or the error response to it; or one error response to the whole batch.

    Args:
        body: The request's body.
        throttle: Counts one call toward the caller's rate. It is called for each message but the
            first, which the HTTP request counted. A request over the rate gets an error response, a
            notification over the rate is dropped.
    """
    try:
        values = load_json(body, limit=CALL_LIMIT)
    except Refused as refused:
        return error_response(PARSE_ERROR, refused.message)
    if not 1 <= len(values) <= MAX_MESSAGES:
        return error_response(INVALID_REQUEST, f"A batch must have 1 to {MAX_MESSAGES} messages.")
    messages = [_parse(values[0])]
    for value in values[1:]:
        message = _parse(value)
        try:
            throttle()
        except TooManyRequests as refused:
            messages += _refuse(message, refused)
        else:
            messages.append(message)
    return messages


def _refuse(
    parsed: SessionMessage | JSONRPCError, refused: Refused
) -> list[SessionMessage | JSONRPCError]:
    if isinstance(parsed, JSONRPCError):
        return [parsed]
    if not isinstance(parsed.message, JSONRPCRequest):
        return []
    return [error_response(INVALID_REQUEST, refused.message, parsed.message.id, refused.as_dict())]


def _parse(value: Any) -> SessionMessage | JSONRPCError:
    parsed = parse_message(orjson.dumps(value))
    if isinstance(parsed, SessionMessage):
        message = parsed.message
        if isinstance(message, JSONRPCRequest) and message.method == "initialize":
            return error_response(
                INVALID_REQUEST, "initialize cannot be part of a batch.", message.id
            )
    return parsed


class ResponseCollector:
    """Collects the SDK's responses to one message of a batch, sent as JSON or as an event stream.

    Notifications such as progress are dropped: a batch gets one JSON response.
    """

    def __init__(self) -> None:
        self.errors: list[dict[str, Any]] = []
        self._data = bytearray()

    async def send(self, message: Mapping[str, Any]) -> None:
        """Receive an ASGI event."""
        self._data += message.get("body", b"")

    def responses(self) -> list[dict[str, Any]]:
        """Return the responses; there is none to a notification."""
        lines = bytes(self._data).splitlines()
        texts = [
            line.removeprefix(b"data: ") for line in lines if line[:6] in (b"data: ", b'{"json')
        ]
        values = [orjson.loads(text) for text in texts if text.strip()]
        return [*self.errors, *(value for value in values if "method" not in value)]
