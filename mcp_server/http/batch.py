"""Batches of JSON-RPC: the revision 2025-03-26 demands that they are taken; no other knows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
)

from decisions.errors import Refused, TooManyRequests
from decisions.validation.json_input import CALL_LIMIT, load_json
from mcp_server.protocol.message_parser import parse_message

REVISION = "2025-03-26"
MAX_MESSAGES = 50


def may_be_batch(revision: str, body: bytes) -> bool:
    """Tell whether the body is a list from a client that may send one: those of that revision name
    none in their headers.
    """
    return revision in ("", REVISION) and body.lstrip()[:1] == b"["


def parse_batch(
    body: bytes, count: Callable[[], None]
) -> list[SessionMessage | JSONRPCError] | JSONRPCError:
    """Return what the gate makes of each message, or the error that answers them all.

    Each message is a call like any other: `count` is asked for each but the first, which came
    counted with its request. A message that it refuses is an error; a notification is left out.
    """
    try:
        values = load_json(body, limit=CALL_LIMIT)
    except Refused as refused:
        return _error(PARSE_ERROR, refused.message)
    if not 1 <= len(values) <= MAX_MESSAGES:
        return _error(INVALID_REQUEST, f"A batch holds 1 to {MAX_MESSAGES} messages.")
    messages = [_judged(values[0])]
    for value in values[1:]:
        verdict = _judged(value)
        try:
            count()
        except TooManyRequests as refused:
            messages += _refused(verdict, refused)
        else:
            messages.append(verdict)
    return messages


def _refused(
    verdict: SessionMessage | JSONRPCError, refused: Refused
) -> list[SessionMessage | JSONRPCError]:
    if isinstance(verdict, JSONRPCError):
        return [verdict]
    if not isinstance(verdict.message, JSONRPCRequest):
        return []
    return [_error(INVALID_REQUEST, refused.message, verdict.message.id, refused.as_dict())]


def _judged(value: Any) -> SessionMessage | JSONRPCError:
    verdict = parse_message(orjson.dumps(value))
    if isinstance(verdict, SessionMessage):
        message = verdict.message
        if isinstance(message, JSONRPCRequest) and message.method == "initialize":
            return _error(INVALID_REQUEST, "initialize cannot be part of a batch.", message.id)
    return verdict


def _error(
    code: int, told: str, request_id: str | int | None = None, data: Any = None
) -> JSONRPCError:
    error = ErrorData(code=code, message=told, data=data)
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=error)


class ResponseCollector:
    """Collects what the SDK answers to one message of a batch, be it JSON or a stream of events.

    Progress is left out: a batch is answered whole.
    """

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []
        self._data = bytearray()

    async def send(self, message: Mapping[str, Any]) -> None:
        """Take an event of ASGI."""
        self._data += message.get("body", b"")

    def take(self) -> list[dict[str, Any]]:
        """Return the answers, none for a notification."""
        lines = bytes(self._data).splitlines()
        texts = [
            line.removeprefix(b"data: ") for line in lines if line[:6] in (b"data: ", b'{"json')
        ]
        values = [orjson.loads(text) for text in texts if text.strip()]
        return [*self.found, *(value for value in values if "method" not in value)]
