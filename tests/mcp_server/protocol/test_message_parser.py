"""Message validation before the MCP SDK: every invalid request line gets an error response."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types.jsonrpc import JSONRPCError, JSONRPCNotification, JSONRPCRequest

from decisions.foundation.errors import MalformedBody
from mcp_server.protocol.line_reader import OversizedLine
from mcp_server.protocol.message_parser import parse_message
from mcp_server.protocol.request_context import context_of


def call(arguments: str, *, request_id: str = "7") -> bytes:
    """Return the line of a tools/call with arguments as written."""
    params = f'{{"name":"get_task_run","arguments":{arguments}}}'
    head = f'{{"jsonrpc":"2.0","id":{request_id},"method":"tools/call"'
    return f'{head},"params":{params}}}'.encode()


def error_of(line: bytes | OversizedLine) -> tuple[int, Any]:
    """Return the code and the id of the error that answers the line."""
    answer = parse_message(line)
    assert isinstance(answer, JSONRPCError), answer
    return answer.error.code, answer.id


def accepted(line: bytes) -> SessionMessage:
    answer = parse_message(line)
    assert isinstance(answer, SessionMessage), answer
    return answer


def refusal_of_arguments(line: bytes) -> str:
    """Return the error message of a call whose arguments the parser refused and removed."""
    message = accepted(line)
    assert isinstance(message.message, JSONRPCRequest)
    assert message.message.params is not None
    assert message.message.params["arguments"] == {}
    assert isinstance(message.metadata, ServerMessageMetadata)
    error_of = context_of(message.metadata.request_context).refused
    assert isinstance(error_of, MalformedBody)
    return error_of.message


def test_a_valid_request_passes_unchanged() -> None:
    message = accepted(call('{"runId":"run_1","deep":[[1.5,null,"é"]]}'))
    assert isinstance(message.message, JSONRPCRequest)
    assert message.message.id == 7
    assert message.message.params == {
        "name": "get_task_run",
        "arguments": {"runId": "run_1", "deep": [[1.5, None, "é"]]},
    }
    assert message.metadata is None


def test_a_notification_passes() -> None:
    line = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\r'
    assert isinstance(accepted(line).message, JSONRPCNotification)


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b'{"jsonrpc":"2.0","id":1,"method":',
        b"\xff\xfe{\x00}\x00",
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'"text',
        b"NaN",
        b'{"a":' * 50_000,
    ],
)
def test_a_line_that_is_not_json_gets_a_parse_error(line: bytes) -> None:
    assert error_of(line) == (-32700, None)


@pytest.mark.parametrize(
    "line", [b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', b"5", b"null", b'"ping"', b"{}"]
)
def test_json_that_is_not_a_message_is_an_invalid_request(line: bytes) -> None:
    assert error_of(line) == (-32600, None)


@pytest.mark.parametrize("bad_id", ["null", "true", "1.5", "[1]", "{}", "1e3", str(2**60)])
def test_a_request_with_an_unusable_id_still_gets_an_error(bad_id: str) -> None:
    line = f'{{"jsonrpc":"2.0","id":{bad_id},"method":"ping"}}'
    assert error_of(line.encode()) == (-32600, None)


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":3,"method":"ping"}',
        b'{"jsonrpc":"1.0","id":3,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":3,"method":5}',
        b'{"jsonrpc":"2.0","id":3,"method":"ping","params":[1]}',
        b'{"jsonrpc":"2.0","id":3}',
    ],
)
def test_a_malformed_request_is_answered_with_its_id(line: bytes) -> None:
    assert error_of(line) == (-32600, 3)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"runId":NaN}', "NaN"),
        ('{"runId":-Infinity}', "Infinity"),
        ('{"runId":1e999}', "out of range"),
        ('{"runId":"a","runId":"b"}', "duplicate key"),
        (r'{"runId":"run_\u0000"}', "NUL"),
        (r'{"runId":"\ud800"}', "surrogate"),
        ('{"x":' + "[" * 5000 + "]" * 5000 + "}", "nested deeper"),
        ('{"x":' + '{"y":' * 400 + "1" + "}" * 400 + "}", "nested deeper"),
        ("[" + "0," * 100_001 + "0]", "more than 100000 values"),
        ('{"x":' + "9" * 5000 + "}", "not valid JSON"),
    ],
)
def test_refused_arguments_become_a_tool_error(arguments: str, expected: str) -> None:
    assert expected in refusal_of_arguments(call(arguments))


def test_arguments_in_bad_utf8_become_a_tool_error() -> None:
    assert "UTF-8" in refusal_of_arguments(call('{"runId":"@"}').replace(b"@", b"\xff"))


def test_brackets_and_quotes_inside_a_string_are_not_structure() -> None:
    deep = json.dumps("[" * 300 + '"\\')
    assert "NaN" in refusal_of_arguments(call(f'{{"x":{deep},"y":NaN}}'))


def test_a_call_with_refused_arguments_keeps_its_id_name_and_meta() -> None:
    line = (
        b'{"method":"tools/call","params":{"_meta":{"progressToken":"p"},"name":"n",'
        b'"arguments":{"a":NaN}},"jsonrpc":"2.0","id":"x"}'
    )
    message = accepted(line).message
    assert isinstance(message, JSONRPCRequest)
    assert message.id == "x"
    assert message.params == {"_meta": {"progressToken": "p"}, "name": "n", "arguments": {}}


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{"cursor":NaN}}',
        b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"a\\u0000"}}',
        b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":[NaN]}',
        b'{"jsonrpc":"2.0","id":4,"method":"ping","params":{},"params":{}}',
        b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"_meta":{"a":"\\ud800"}}}',
    ],
)
def test_a_request_refused_outside_its_arguments_is_answered_with_its_id(line: bytes) -> None:
    assert error_of(line) == (-32600, 4)


@pytest.mark.parametrize("duplicate", [b'"id":1,"id":2', b'"id":1,"method":"ping"'])
def test_a_line_with_a_duplicate_id_or_method_gets_an_error_without_an_id(duplicate: bytes) -> None:
    line = b'{"jsonrpc":"2.0",' + duplicate + b',"method":"ping"}'
    assert error_of(line) == (-32700, None)


@pytest.mark.parametrize(
    ("head", "tail", "request_id"),
    [
        (b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"a":"xx', b'xx"}}', 5),
        (b'{"method":"tools/call","params":{"a":"xx', b'xx"},"jsonrpc":"2.0","id":6}', 6),
        (b'{"method":"tools/call","id":"k","params":{"a":"xx', b'xx"}}\r', "k"),
        (b'{"params":{"id":9,"a":"xx', b'xx","id":9}}', None),
        (b"xx", b"xx", None),
    ],
)
def test_a_line_over_the_limit_is_answered_with_its_id_if_it_can_be_found(
    head: bytes, tail: bytes, request_id: Any
) -> None:
    assert error_of(OversizedLine(head, tail)) == (-32600, request_id)


@pytest.mark.parametrize("bomb", ["[" * 3_000_000, '"",' * 900_000 + "NaN", '{"a":' * 600_000])
def test_a_large_refused_line_is_answered_quickly_with_its_id(bomb: str) -> None:
    assert error_of(call(f"[{bomb}]")) == (-32600, 7)


@pytest.mark.parametrize("text", ['\\"' * 900_000, "\\" * 1_800_001, '",\\"' * 400_000])
def test_an_unterminated_string_is_scanned_only_once(text: str) -> None:
    line = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a":"' + text.encode()
    assert error_of(line) == (-32700, None)


@given(st.lists(st.sampled_from(["[", '{"k":', '{"[":', "[1,"]), max_size=80))
def test_a_call_is_parsed_to_its_end_despite_deeply_nested_arguments(opened: list[str]) -> None:
    closing = "".join("]" if bracket[0] == "[" else "}" for bracket in reversed(opened))
    line = call('{"a":' + "".join(opened) + "NaN" + closing + ',"b":[[1],{"c":"]"}]}')
    assert refusal_of_arguments(line)


@given(st.binary(max_size=200))
def test_parsing_accepts_any_bytes_without_an_exception(raw: bytes) -> None:
    parse_message(raw)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    ),
    st.sampled_from(["id", "method", "params", "jsonrpc"]),
)
def test_any_json_is_a_message_or_an_error_response(value: Any, member: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}, member: value}
    answer = parse_message(json.dumps(message).encode())
    assert isinstance(answer, SessionMessage | JSONRPCError)
