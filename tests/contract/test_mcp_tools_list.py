"""Test tools/list: names, closed schemas and hints as hosts and the protocol require them."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest

from decisions.foundation.validation.json_schema import compile_schema
from mcp_server.tools.listing import list_entry
from mcp_server.tools.registry import McpTool, UnknownToolset, check_toolsets, load_toolsets
from tests.contract.mcp_host import Host

TRANSPORTS = ("stdio", "http", "sse")

S0_TOOLS = {
    "list_task_templates",
    "run_task_template",
    "get_task_run",
    "list_task_runs",
    "cancel_task_run",
    "get_artifact",
    "get_runtime_profile",
    "subscribe_task_run_events",
    "wait_task_run",
    "answer_task_run",
}
ADDED_TOOLS = {"read_page_content"}
CONTINUITY = {
    "continuity_chat",
    "continuity_confirm_decision",
    "continuity_report_outcome",
    "continuity_get_state",
    "continuity_list_objects",
    "continuity_put_shell",
    "continuity_put_success_path",
}
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
RUNTIME_TOOLS = list(load_toolsets(["runtime"]).values())
CONTINUITY_TOOLS = list(load_toolsets(["continuity"]).values())
TOOLS = [*RUNTIME_TOOLS, *CONTINUITY_TOOLS]
each_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


def test_the_runtime_toolset_has_the_tools_of_s0_and_one_more() -> None:
    assert {tool.name for tool in RUNTIME_TOOLS} == S0_TOOLS | ADDED_TOOLS


def test_the_continuity_toolset_has_the_seven_tools_of_s2() -> None:
    assert {tool.name for tool in CONTINUITY_TOOLS} == CONTINUITY


@each_tool
def test_every_host_accepts_the_name_of_a_tool(tool: McpTool) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool.name)


@each_tool
def test_the_root_of_both_schemas_is_an_object_without_alternatives(tool: McpTool) -> None:
    is_open = tool in CONTINUITY_TOOLS  # S2 §7: fields that the back end adds are passed on
    assert tool.input_schema["additionalProperties"] is False
    assert tool.output_schema.get("additionalProperties", True) is is_open
    for schema in (tool.input_schema, tool.output_schema):
        assert schema["type"] == "object"
        assert not {"oneOf", "anyOf", "allOf"} & set(schema)
        compile_schema(schema)


@each_tool
def test_a_tool_has_a_short_description_and_no_title_that_repeats_its_name(tool: McpTool) -> None:
    assert tool.title != tool.name.replace("_", " ").capitalize()
    assert 80 < len(tool.description) < 600


def test_hints_distinguish_reading_from_changing_tools() -> None:
    reading = {tool.name for tool in TOOLS if tool.read_only}
    assert {"run_task_template", "cancel_task_run", "answer_task_run"} == S0_TOOLS - reading
    assert {"continuity_get_state", "continuity_list_objects"} == CONTINUITY & reading
    assert not any(tool.destructive for tool in TOOLS if tool.read_only)
    assert {"run_task_template", "cancel_task_run"} == {t.name for t in TOOLS if t.destructive}
    not_idempotent = {"run_task_template", "answer_task_run"}
    changing = [tool for tool in RUNTIME_TOOLS if not tool.read_only]
    assert not_idempotent == {tool.name for tool in changing if not tool.idempotent}


def listed(host: Host) -> dict[str, dict[str, Any]]:
    tools = host.request("tools/list", {})["result"]["tools"]
    return {tool["name"]: tool for tool in tools}


def test_the_list_over_mcp_has_schemas_and_hints(host: Host) -> None:
    tools = listed(host)
    assert set(tools) == S0_TOOLS | ADDED_TOOLS | CONTINUITY | WORKSPACE
    cancel = tools["cancel_task_run"]
    assert cancel["inputSchema"]["required"] == ["runId"]
    assert cancel["outputSchema"]["properties"]["success"] == {"type": "boolean"}
    # Only what differs from the protocol's defaults: it writes, and may destroy.
    assert cancel["annotations"] == {"idempotentHint": True, "openWorldHint": False}
    reading = tools["get_task_run"]["annotations"]
    assert reading == {"readOnlyHint": True, "openWorldHint": False}


def test_the_whole_list_stays_small_for_a_model(host: Host) -> None:
    result = host.request("tools/list", {})["result"]
    assert len(orjson.dumps(result)) <= 32_000


@pytest.mark.parametrize("name", sorted(S0_TOOLS | CONTINUITY | WORKSPACE))
def test_a_listed_tool_names_every_argument_and_every_field_with_its_type(name: str) -> None:
    tool = load_toolsets(["runtime", "continuity", "workspace"])[name]
    entry = list_entry(tool)
    assert set(entry.input_schema["properties"]) == set(tool.input_schema["properties"])
    assert entry.output_schema is not None
    if tool.output_as_of:
        other = load_toolsets(["runtime"])[tool.output_as_of]
        assert tool.output_as_of in tool.description
        assert set(tool.output_schema["properties"]) - set(other.output_schema["properties"]) <= {
            "templateVersion"
        }
        return
    fields = entry.output_schema["properties"]
    assert set(fields) == set(tool.output_schema.get("properties", {}))
    for field, listed_field in fields.items():
        full = tool.output_schema["properties"][field]
        assert listed_field.get("type", listed_field.get("const")) == full.get("type", True)


@pytest.mark.parametrize("names", [["nope"], ["runtime", "../runtime"], [""], []])
def test_an_unknown_toolset_is_refused_with_the_list_of_known_ones(names: list[str]) -> None:
    with pytest.raises(UnknownToolset, match=r"Known: .*runtime"):
        check_toolsets(names)


def test_a_toolset_named_twice_is_offered_once() -> None:
    assert list(load_toolsets(["runtime", "runtime"])) == [tool.name for tool in RUNTIME_TOOLS]
