"""Parse and validate messages before the SDK sees them; every invalid one gets an error response.

The SDK accepts duplicate keys and NaN, and it does not answer what it cannot parse, so a host would
wait forever. Here each line has one of these outcomes:

    a valid message                                               passed to the SDK
    not JSON, and no request even when parsed leniently           -32700 with id null
    JSON, but not a JSON-RPC message (a batch, a list, …)         -32600
    a request with invalid JSON in it (such as NaN)               -32600 with its id
    a tools/call with invalid JSON only in its arguments          the tool error INVALID_PARAMETER

An invalid line over 2 MiB is not parsed a second time: its id is searched at its start and end.
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

from decisions.foundation.errors import Refused
from decisions.foundation.validation.json_input import CALL_LIMIT, MAX_DEPTH, check_value, load_json
from mcp_server.protocol.line_reader import EDGE_BYTES, OversizedLine
from mcp_server.protocol.request_context import MessageContext

RequestId = str | int
ID_TEXT_MAX = 256  # characters
ID_MAX = 2**53
LENIENT_BYTES = 2 * 1024 * 1024
# An unterminated string matches to the end of the text, and the quantifiers are possessive:
# otherwise each quote inside it would start another match, in quadratic time.
_STRINGS_AND_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{]+|[\]}]+', re.DOTALL)
# Common clients put the id near the start, or last in the message.
_ID = rb'"id"\s*:\s*(-?\d{1,16}|"[^"\\]{0,256}")'
_ID_AT_START = re.compile(
    rb'\s*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,\s*)*' + _ID + rb"\s*,"
)
_ID_AT_END = re.compile(
    rb'[}\]]\s*,\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,\s*)*' + _ID + rb"\s*\}\s*$"
)


def parse_message(line: bytes | OversizedLine) -> SessionMessage | JSONRPCError:
    """Return the message that a line contains, or the error response to it."""
    if isinstance(line, OversizedLine):
        message = f"The message is larger than {CALL_LIMIT} bytes."
        return error_response(INVALID_REQUEST, message, _id_at_edges(line))
    try:
        value = load_json(line, limit=CALL_LIMIT)
    except Refused as refused:
        return _answer_refused(line, refused)
    return _message(value)


def _message(value: Any) -> SessionMessage | JSONRPCError:
    """Return the JSON value as a message, or the error response to it."""
    if not isinstance(value, dict):
        return error_response(
            INVALID_REQUEST, "A message must be a single JSON object; batches are not accepted."
        )
    request_id = _usable_id(value.get("id"))
    if "method" in value and "id" in value and request_id is None:
        return error_response(
            INVALID_REQUEST, "The id of a request must be a string or an integer."
        )
    try:
        return SessionMessage(_model_of(value).model_validate(value, by_name=False))
    except ValidationError:
        return error_response(
            INVALID_REQUEST, "The object is not a JSON-RPC 2.0 message.", request_id
        )


def _model_of(
    value: dict[str, Any],
) -> type[JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError]:
    if "method" in value:
        return JSONRPCRequest if "id" in value else JSONRPCNotification
    return JSONRPCError if "error" in value else JSONRPCResponse


def error_response(
    code: int, message: str, request_id: RequestId | None = None, data: Any = None
) -> JSONRPCError:
    """Return a JSON-RPC error."""
    error = ErrorData(code=code, message=message, data=data)
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=error)


def _usable_id(value: Any) -> RequestId | None:
    if isinstance(value, str):
        return value if len(value) <= ID_TEXT_MAX and value.isprintable() else None
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return value if is_integer and abs(value) <= ID_MAX else None


# --- invalid lines -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _LenientRequest:
    """A request in an invalid line, as far as it can be parsed."""

    value: dict[str, Any]
    request_id: RequestId


def _answer_refused(line: bytes, refused: Refused) -> SessionMessage | JSONRPCError:
    """Return an error response, with the request's id where it can be found, or the tools/call
    without its arguments, which the server then refuses.
    """
    message = refused.message
    if len(line) > LENIENT_BYTES:
        request_id = _id_at_edges(OversizedLine(line[:EDGE_BYTES], line[-EDGE_BYTES:]))
        return error_response(
            PARSE_ERROR if request_id is None else INVALID_REQUEST, message, request_id
        )
    request = _parse_leniently(line)
    if request is None:
        return error_response(PARSE_ERROR, message)
    call = _call_without_arguments(request.value)
    if call is None:
        return error_response(INVALID_REQUEST, message, request.request_id)
    # The server refuses the call, so that the result has the form of the client's protocol version.
    return SessionMessage(
        call, ServerMessageMetadata(request_context=MessageContext(refused=refused))
    )


def _parse_leniently(line: bytes) -> _LenientRequest | None:
    """Parse a request despite invalid values in it; None without exactly one id and one method."""
    if b'"id"' not in line or b'"method"' not in line:
        return None
    members: list[tuple[str, Any]] = []

    def keep_last(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members[:] = pairs  # the outermost object is the last one parsed
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
    return None if request_id is None else _LenientRequest(value, request_id)


def _prune(text: str) -> str:
    """Return the JSON text with everything nested deeper than MAX_DEPTH replaced by null."""
    pieces: list[str] = []
    depth = begin = 0
    for token in _STRINGS_AND_BRACKETS.finditer(text):
        start, size = token.start(), token.end() - token.start()
        if text[start] in "[{":
            if depth <= MAX_DEPTH < depth + size:
                pieces += [text[begin : start + MAX_DEPTH - depth], "null"]
            depth += size
        elif text[start] in "]}":
            if depth - size <= MAX_DEPTH < depth:
                begin = start + depth - MAX_DEPTH
            depth -= size
    return "".join([*pieces, text[begin:]])


def _call_without_arguments(value: dict[str, Any]) -> JSONRPCRequest | None:
    """Return the tools/call without its arguments; None where other parts of it are invalid too."""
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
