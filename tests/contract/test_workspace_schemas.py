"""Test that MCP, REST and the registry have exactly the names and schemas of S4."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from decisions.foundation.validation.json_schema import compile_schema
from mcp_server.tools.registry import McpTool, load_toolsets
from runners.invocation.arguments import input_schema
from runners.tools.registry import list_tools
from runs.api.schemas import tools as schemas

OWN = Path(__file__).parent / "s4_schemas.json"
SEED = (
    Path(__file__).parent.parent.parent.parent / "shared/seeds/S4-workspace-tool-contracts.md"
)  # present on some machines only
SCHEMAS: dict[str, Any] = json.loads(OWN.read_text("utf-8"))
WORKSPACE = {
    "list_files",
    "read_file",
    "write_to_file",
    "replace_in_file",
    "search_files",
    "list_project_resources",
    "validate_script",
    "preview_scene",
    "list_snapshots",
    "restore_snapshot",
    "get_runtime_info",
    "generate_character_profile",
    "ask_followup_question",
    "attempt_completion",
}
DEVELOPER = {"execute_command", "browser_action"}
ALTERNATIVES = {"oneOf", "anyOf", "allOf"}
TOOLS = {tool.name: tool for tool in load_toolsets(["workspace", "developer"]).values()}
NO_ARGUMENTS = {"type": "object", "properties": {}, "additionalProperties": False}
each_tool = pytest.mark.parametrize("name", sorted(WORKSPACE | DEVELOPER))


def test_the_copy_of_the_schemas_equals_the_text_of_s4() -> None:
    if not SEED.exists():
        pytest.skip("the seed is not on this machine; the copy of its schemas is what is tested")
    blocks = re.findall(r"```json\n(\{\s*\n\s*\"\$id\".*?)```", SEED.read_text("utf-8"), re.S)
    assert {block["$id"]: block for block in map(json.loads, blocks)} == SCHEMAS


def test_the_toolsets_have_the_fourteen_and_the_two_tools_of_s4() -> None:
    assert set(load_toolsets(["workspace"])) == WORKSPACE
    assert set(load_toolsets(["developer"])) == DEVELOPER
    assert {tool.name for tool in list_tools("workspace")} == WORKSPACE | DEVELOPER


def unnamed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without its `$id` and `$schema`, which S4 gives to most of them."""
    return {key: value for key, value in schema.items() if key not in ("$id", "$schema")}


@each_tool
def test_the_schemas_of_a_tool_are_those_of_s4(name: str) -> None:
    (tool,) = (tool for tool in list_tools("workspace") if tool.name == name)
    schema = {
        key: value for key, value in input_schema(tool).items() if key not in ("$id", "$schema")
    }
    expected = SCHEMAS.get(f"{name}.request", NO_ARGUMENTS)
    assert schema == {
        key: value for key, value in expected.items() if key not in ("$id", "$schema")
    }
    if f"{name}.response" in SCHEMAS:
        assert tool.response == SCHEMAS[f"{name}.response"]


@pytest.mark.parametrize("name", ["ask_followup_question", "attempt_completion", "browser_action"])
def test_answers_that_s4_defines_by_example_have_closed_schemas(name: str) -> None:
    validator = compile_schema(TOOLS[name].output_schema)
    key = "ok" if name == "browser_action" else "ack"
    assert validator.is_valid({key: True})
    assert not validator.is_valid({key: True, "more": 1})


@each_tool
def test_mcp_schemas_omit_only_the_alternatives(name: str) -> None:
    shown = TOOLS[name].input_schema
    expected = SCHEMAS.get(f"{name}.request", NO_ARGUMENTS)
    assert shown["additionalProperties"] is False
    assert not ALTERNATIVES & set(shown)
    assert shown["properties"] == expected["properties"]


@each_tool
def test_a_tool_has_a_description_for_the_model(name: str) -> None:
    tool: McpTool = TOOLS[name]
    assert 80 < len(tool.description) < 700
    assert not (tool.read_only and tool.destructive)


def test_rest_lists_the_same_schemas(api: httpx.Client) -> None:
    answer = api.get("/api/v1/tools").json()
    compile_schema(schemas.TOOLS_OUTPUT).validate(answer)
    listed = {tool["name"]: tool for tool in answer["tools"]}
    assert set(listed) >= WORKSPACE | DEVELOPER | {"read_page", "open_page"}
    for name in WORKSPACE | DEVELOPER:
        assert listed[name].get("outputSchema") == TOOLS[name].output_schema
        expected = SCHEMAS.get(f"{name}.request", NO_ARGUMENTS)
        assert listed[name]["inputSchema"]["properties"] == expected["properties"]
    assert listed["write_to_file"]["effect"] == "write"
    assert (listed["preview_scene"]["effect"], TOOLS["preview_scene"].read_only) == ("write", False)
    assert (listed["read_file"]["risk"], listed["read_page"]["effect"]) == ("low", "read")
