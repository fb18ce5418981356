"""The input gate in front of the SDK: which lines become messages, and how the others are answered.

The SDK takes duplicate keys and NaN, and answers nothing to what it cannot parse, so a host would
wait for ever (mechanisms 18). Here every line gets an answer:

    not JSON, not even read leniently, or no request at all   -32700 with id null
    JSON, but no JSON-RPC message (a batch, a list, …)        -32600
    a request that the gate refuses                           -32600 with its id
    a tools/call whose arguments alone the gate refuses       the tool error INVALID_PARAMETER

A refused line over 2 MiB is not read again to find out more: its id is looked for at its edges.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types.jsonrpc import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic import ValidationError

from decisions.errors import Refused
from decisions.validation.json_input import CALL_LIMIT, MAX_DEPTH, check_value, load_json
from mcp_server.protocol.line_reader import EDGE_BYTES, OversizedLine
from mcp_server.protocol.request_context import MessageContext

RequestId = str | int
ID_TEXT_MAX = 256  # characters
ID_MAX = 2**53
OUTLINE_BYTES = 2 * 1024 * 1024
# A string without an end is taken as a string to the end of the text, and nothing is tried twice:
# else each quote in it would be the start of another try.
_STRINGS_AND_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{]+|[\]}]+', re.DOTALL)
# Where the usual clients put the id: near the start, or as the last member of the message.
_ID = rb'"id"\s*:\s*(-?\d{1,16}|"[^"\\]{0,256}")'
_ID_AT_START = re.compile(
    rb'\s*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,\s*)*' + _ID + rb"\s*,"
)
_ID_AT_END = re.compile(
    rb'[}\]]\s*,\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,\s*)*' + _ID + rb"\s*\}\s*$"
)


def parse_message(line: bytes | OversizedLine) -> SessionMessage | JSONRPCError:
    """Return the message of a line, or the error that answers it."""
    if isinstance(line, OversizedLine):
        told = f"The line has more than {CALL_LIMIT} bytes."
        return _error(INVALID_REQUEST, told, _id_at_edges(line))
    try:
        value = load_json(line, limit=CALL_LIMIT)
    except Refused as refused:
        return _salvage(line, refused)
    return _message(value)


def _message(value: Any) -> SessionMessage | JSONRPCError:
    """Return the message that the JSON value is."""
    if not isinstance(value, dict):
        return _error(INVALID_REQUEST, "A message is one JSON object a line; there are no batches.")
    request_id = _usable_id(value.get("id"))
    if "method" in value and "id" in value and request_id is None:
        return _error(INVALID_REQUEST, "The id of a request is a string or a whole number.")
    try:
        return SessionMessage(_model_of(value).model_validate(value, by_name=False))
    except ValidationError:
        return _error(INVALID_REQUEST, "The object is no JSON-RPC 2.0 message.", request_id)


def _model_of(
    value: dict[str, Any],
) -> type[JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError]:
    if "method" in value:
        return JSONRPCRequest if "id" in value else JSONRPCNotification
    return JSONRPCError if "error" in value else JSONRPCResponse


def _error(code: int, message: str, request_id: RequestId | None = None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message))


def _usable_id(value: Any) -> RequestId | None:
    if isinstance(value, str):
        return value if len(value) <= ID_TEXT_MAX and value.isprintable() else None
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and abs(value) <= ID_MAX else None


# --- lines that the gate refuses -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Outline:
    """What can be read of a refused line."""

    value: dict[str, Any]
    request_id: RequestId


def _salvage(line: bytes, refused: Refused) -> SessionMessage | JSONRPCError:
    """Answer a refused line so that whoever sent it does not wait: with its id where it has one."""
    told = refused.message
    if len(line) > OUTLINE_BYTES:
        request_id = _id_at_edges(OversizedLine(line[:EDGE_BYTES], line[-EDGE_BYTES:]))
        return _error(PARSE_ERROR if request_id is None else INVALID_REQUEST, told, request_id)
    outline = _outline(line)
    if outline is None:
        return _error(PARSE_ERROR, told)
    call = _call_without_arguments(outline.value)
    if call is None:
        return _error(INVALID_REQUEST, told, outline.request_id)
    # The server answers it like any other refusal, in the shape of the client's protocol era.
    return SessionMessage(
        call, ServerMessageMetadata(request_context=MessageContext(refused=refused))
    )


def _outline(line: bytes) -> _Outline | None:
    """Read a request leniently: whatever is wrong inside, its id and its method may be whole."""
    if b'"id"' not in line or b'"method"' not in line:
        return None
    members: list[tuple[str, Any]] = []

    def keep_last(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members[:] = pairs  # the outermost object comes last
        return dict(pairs)

    try:
        value = json.loads(
            _prune(line.decode("utf-8", errors="replace")),
            object_pairs_hook=keep_last,
            parse_constant=lambda _: None,
            parse_int=lambda digits: int(digits) if len(digits) < 20 else None,
        )
    except (ValueError, RecursionError):
        return None
    names = [name for name, _ in members]
    if not isinstance(value, dict) or names.count("id") != 1 or names.count("method") != 1:
        return None
    request_id = _usable_id(value["id"])
    return None if request_id is None else _Outline(value, request_id)


def _prune(text: str) -> str:
    """Return JSON text with everything below the gate's depth replaced by null."""
    kept: list[str] = []
    depth = begin = 0
    for token in _STRINGS_AND_BRACKETS.finditer(text):
        start, size = token.start(), token.end() - token.start()
        if text[start] in "[{":
            if depth <= MAX_DEPTH < depth + size:
                kept += [text[begin : start + MAX_DEPTH - depth], "null"]
            depth += size
        elif text[start] in "]}":
            if depth - size <= MAX_DEPTH < depth:
                begin = start + depth - MAX_DEPTH
            depth -= size
    return "".join([*kept, text[begin:]])


def _call_without_arguments(value: dict[str, Any]) -> JSONRPCRequest | None:
    """Return the tools/call without its arguments, or None where more than those is at fault."""
    params = value.get("params")
    if value.get("method") != "tools/call" or not isinstance(params, dict):
        return None
    rest = {**value, "params": {**params, "arguments": {}}}
    try:
        check_value(rest)
        return JSONRPCRequest.model_validate(rest, by_name=False)
    except (Refused, ValidationError):
        return None


def _id_at_edges(line: OversizedLine) -> RequestId | None:
    found = _ID_AT_START.match(line.head) or _ID_AT_END.search(line.tail)
    if found is None:
        return None
    try:
        return _usable_id(json.loads(found.group(1)))
    except ValueError:
        return None
