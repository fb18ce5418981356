"""The names under which runners' tools are published, and which of their schemas models receive."""

from __future__ import annotations

import asyncio
import re

import pytest

from mcp_server.protocol.progress import TEXT_MAX, TextProgress
from runners.remote_tools.model_facing import fit_schema, wire_names

TOOL_NAMES = ["bash.exec", "naïve tool", "a" * 128, "工具", "a/b", "mcp:x", ".", "_", "-"]


def test_every_name_is_valid_for_hosts() -> None:
    names = wire_names(TOOL_NAMES)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", wire) for wire in names.values())
    assert names["bash.exec"] == "bash_exec"
    assert len(set(names.values())) == len(TOOL_NAMES)


def test_names_that_would_be_equal_stay_distinct() -> None:
    names = wire_names(["a.b", "a/b", "a_b", "c"])
    assert names["a_b"] == "a_b"
    assert names["c"] == "c"
    assert re.fullmatch(r"a_b_[0-9a-f]{8}", names["a.b"])
    assert len(set(names.values())) == 4
    assert wire_names(["a/b", "a.b"])["a.b"] == names["a.b"]


def test_long_names_with_the_same_start_stay_distinct() -> None:
    names = wire_names(["b" * 100 + "1", "b" * 100 + "2"])
    assert len(set(names.values())) == 2
    assert all(len(wire) == 64 for wire in names.values())


def test_no_tool_gets_the_marked_name_of_another() -> None:
    marked = wire_names(["a.b", "a_b"])["a.b"]
    names = wire_names(["a.b", "a_b", marked])
    assert (names["a.b"], len(set(names.values()))) == (marked, 3)


def test_names_of_our_own_tools_are_unchanged() -> None:
    names = wire_names(["read_file", "read.file", "list_files"], taken={"read_file"})
    assert "read_file" not in names.values()
    assert names["list_files"] == "list_files"


@pytest.mark.parametrize(
    "properties",
    [{"a b": {}}, {"": {}}, {"a" * 65: {}}, {"naïve": {}}, {"a": True}, {"a": {}, "$b": {}}],
)
def test_argument_schemas_that_no_provider_accepts_are_not_published(
    properties: dict[str, object],
) -> None:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    assert fit_schema(schema, at_most=10_000) == {"type": "object"}


def test_schemas_that_hosts_refuse_at_the_root_are_not_published() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"oneOf": [{}]}},
        "oneOf": [{}],
        "anyOf": [{}],
        "allOf": [{}],
        "not": {},
        "enum": [{}],
        "const": {},
        "if": {},
        "then": {},
        "else": {},
    }
    expected = {"type": "object", "properties": {"a": {"oneOf": [{}]}}}
    assert fit_schema(schema, at_most=10_000) == expected
    assert fit_schema(schema, at_most=20) == {"type": "object"}


def test_pieces_that_arrive_during_a_delivery_are_delivered_together() -> None:
    delivered: list[tuple[int, str]] = []

    async def progress(done: int, total: int, message: str) -> None:
        await asyncio.sleep(0)
        delivered.append((done, message))

    async def add_all() -> None:
        text_progress = TextProgress(progress)
        text_progress.add("first ")
        await asyncio.sleep(0)
        for piece in ("a", "b", "c" * TEXT_MAX):
            text_progress.add(piece)
        await text_progress.close()

    asyncio.run(add_all())
    assert delivered == [(1, "first "), (4, "c" * TEXT_MAX)]
