"""Batches of JSON-RPC: the revision 2025-03-26 demands that they are taken; no other knows them."""

from __future__ import annotations

from collections.abc import Mapping
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

from decisions.errors import Refused
from decisions.gate import CALL_LIMIT, load_json
from mcp_server.gate import judge

REVISION = "2025-03-26"
MAX_MESSAGES = 50


def may_be_batch(revision: str, body: bytes) -> bool:
    """Tell whether the body is a list from a client that may send one: those of that revision name
    none in their headers.
    """
    return revision in ("", REVISION) and body.lstrip()[:1] == b"["


def messages_of(body: bytes) -> list[SessionMessage | JSONRPCError] | JSONRPCError:
    """Return what the gate makes of each message, or the error that answers them all."""
    try:
        values = load_json(body, limit=CALL_LIMIT)
    except Refused as refused:
        return _error(PARSE_ERROR, refused.message)
    if not 1 <= len(values) <= MAX_MESSAGES:
        return _error(INVALID_REQUEST, f"A batch holds 1 to {MAX_MESSAGES} messages.")
    return [_judged(value) for value in values]


def _judged(value: Any) -> SessionMessage | JSONRPCError:
    verdict = judge(orjson.dumps(value))
    if isinstance(verdict, SessionMessage):
        message = verdict.message
        if isinstance(message, JSONRPCRequest) and message.method == "initialize":
            return _error(INVALID_REQUEST, "initialize cannot be part of a batch.", message.id)
    return verdict


def _error(code: int, told: str, request_id: str | int | None = None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=told))


class Answers:
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
