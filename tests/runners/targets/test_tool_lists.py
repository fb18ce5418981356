"""The tool lists that runners publish: valid tools are stored, the others are dropped without
harm."""

from __future__ import annotations

import json
from typing import Any

import pytest

from decisions.foundation.errors import InvalidInput
from runners.targets.published_tools import (
    DESCRIPTION_MAX,
    MAX_OFFERS,
    check_configured_tools,
    configured_tools,
    parse_published_tools,
    usable_schema,
)

SCHEMA = {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]}


def publish(*tools: Any) -> list[dict[str, Any]]:
    return parse_published_tools(json.dumps({"tools": tools}).encode())


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def test_a_tool_is_stored_with_its_schema_and_risk() -> None:
    tool = {"name": "bash.exec", "description": "Run\n it.", "inputSchema": SCHEMA, "risk": "high"}
    assert publish(tool) == [{**tool, "description": "Run it."}]
    assert parse_published_tools(json.dumps([tool]).encode()) == publish(tool)


@pytest.mark.parametrize(
    "bad",
    [
        None,
        5,
        [],
        "echo",
        {},
        {"name": ""},
        {"name": 5},
        {"name": "a" * 129},
        {"name": "a\nb"},
        {"name": " a"},
        {"name": "*"},
        {"name": "\u202eevil"},
    ],
)
def test_a_tool_without_a_usable_name_is_left_out(bad: Any) -> None:
    assert [tool["name"] for tool in publish(bad, {"name": "echo"})] == ["echo"]
    with pytest.raises(InvalidInput, match=r"config\.tools\.0"):
        check_configured_tools([bad])


@pytest.mark.parametrize(
    "schema",
    [
        None,
        5,
        [],
        "object",
        {"type": "string"},
        {"type": ["object", "null"]},
        {"type": 7},
        {"type": "object", "properties": 5},
        deep(12),
        {"$ref": "http://example.com/schema"},
        {"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"type": "object", "properties": {"a": {"pattern": "(?=a)"}}},
        {"type": "object", "description": "a" * 20_000},
    ],
    ids=lambda schema: str(schema)[:40],
)
def test_an_unusable_schema_becomes_any_object(schema: Any) -> None:
    (offer,) = publish({"name": "echo", "inputSchema": schema})
    assert offer["inputSchema"] == {"type": "object"}
    with pytest.raises(InvalidInput, match=r"config\.tools\.0\.inputSchema"):
        check_configured_tools([{"name": "echo", "inputSchema": schema}])


def test_a_schema_may_refer_to_itself_and_loses_its_id() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    tool = {
        "$schema": "x",
        "$id": "http://a/",
        "title": "T",
        "$ref": "#/$defs/node",
        "$defs": {"node": node},
    }
    assert usable_schema(tool) == {
        "$ref": "#/$defs/node",
        "$defs": {"node": node},
        "type": "object",
    }


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"{",
        b'"tools"',
        b"{}",
        b'{"tools": {}}',
        b'{"tools": []',
        b"\xff",
        b"[" * 5000,
        b'{"tools":[' + b'{"name":"a"},' * 30_000 + b'{"name":"b"}]}',
    ],
    ids=range(9),
)
def test_a_value_that_is_not_a_list_of_tools_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInput):
        parse_published_tools(body)


def test_a_list_is_bounded_and_has_each_tool_once() -> None:
    many = publish(*({"name": f"tool {number}"} for number in range(MAX_OFFERS + 50)))
    assert len(many) == MAX_OFFERS
    assert publish({"name": "a", "description": "first"}, {"name": "a"})[0] == {
        "name": "a",
        "description": "first",
        "inputSchema": {"type": "object"},
    }
    (long,) = publish({"name": "a", "description": "b" * 9000})
    assert len(long["description"]) == DESCRIPTION_MAX
    with pytest.raises(InvalidInput, match="twice"):
        check_configured_tools([{"name": "a"}, {"name": "a"}])


def test_a_config_names_tools() -> None:
    tools = [{"name": "echo", "inputSchema": SCHEMA}, {"name": "ls", "description": "List."}]
    check_configured_tools(tools)
    assert [tool["name"] for tool in configured_tools({"tools": tools})] == ["echo", "ls"]
    assert configured_tools({"tools": "echo"}) == configured_tools({}) == []
    for invalid in ("echo", {"name": "echo"}, [{"name": "a"}] * (MAX_OFFERS + 1)):
        with pytest.raises(InvalidInput, match=r"config\.tools"):
            check_configured_tools(invalid)
