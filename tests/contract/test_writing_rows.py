"""Test every row of bad inputs for the tools that write and restore, over REST and MCP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runners.targets.workspaces import state_folder
from tests.contract.bad_inputs import FOLDER
from tests.support.runners.tool_client import ToolClient
from tests.support.shared_files import BAD_INPUTS
from tests.support.workspace.workspace_calls import files_in

TOOLS = ("write_to_file", "replace_in_file", "list_snapshots", "restore_snapshot")
OWN_FILE = FOLDER / "bad_inputs_writing.jsonl"
LEFT_OUT = {"$disk_full": "tests/faults/test_workspace_writes.py fills a disk"}
BROKEN, HALF = "snap_20251101T093210_badc0de0", "snap_20251101T093210_0000badd"


def rows() -> list[Any]:
    """Return the rows over both APIs; those that repeat a tool's code over MCP are slow."""
    files = [path for path in (OWN_FILE, BAD_INPUTS) if path.exists()]
    found = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    selected = [
        row for row in found if row["surface"] == "mcp+rest:workspace" and row["call"] in TOOLS
    ]
    cases, seen = [], set[tuple[str, str]]()
    for row in selected:
        if LEFT_OUT.keys() & row["input"].keys():
            continue
        name = f"{row['call']}-{row['expect_code']}-{row['why'][:50]}"
        cases.append(pytest.param("rest", row, id=f"rest-{name}"))
        marks = [pytest.mark.slow] if (row["call"], row["expect_code"]) in seen else []
        seen.add((row["call"], row["expect_code"]))
        cases.append(pytest.param("mcp", row, id=f"mcp-{name}", marks=marks))
    return cases


@pytest.fixture
def project_files(project: Path) -> Path:
    """Create the files and snapshots that the rows refer to."""
    (project / "a.txt").write_text("a.b\n")
    (project / "image.png").write_bytes(b"\x89PNG\r\n\x00")
    (project / "link_to_etc").symlink_to("/etc")
    (project.parent / "outside.txt").write_text("outside a")
    (project / "hardlink_to_outside.txt").hardlink_to(project.parent / "outside.txt")
    snapshots = state_folder(project) / "snapshots"
    snapshots.mkdir(exist_ok=True)
    (snapshots / f"{BROKEN}.txt").write_text("x")
    (snapshots / f"{BROKEN}.meta.json").write_text('{"id":')
    (snapshots / f"{HALF}.meta.json").write_text("{}")
    return project


def steps_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the calls that a row sends, in order."""
    arguments = dict(row["input"])
    if "$sequence" in arguments:
        return list(arguments["$sequence"])
    if not arguments.pop("$after_use_with_other_content", False):
        return [arguments]
    earlier = {**arguments, "content": "other"}
    return [{**earlier, "dryRun": True}, earlier, arguments]


@pytest.mark.parametrize(("tool_client", "row"), rows(), indirect=["tool_client"])
def test_a_row_gets_its_code(
    tool_client: ToolClient, project_files: Path, row: dict[str, Any]
) -> None:
    before = {name: (project_files / name).read_bytes() for name in files_in(project_files)}
    *first, last = steps_of(row)
    for step in first:
        assert tool_client.call(row["call"], step)[0] == "OK"
    after_first = (
        {name: (project_files / name).read_bytes() for name in files_in(project_files)}
        if first
        else before
    )
    code, answer = tool_client.call(row["call"], last)
    assert code == row["expect_code"], answer
    assert str(project_files) not in json.dumps(answer)
    if code != "OK":
        assert {
            name: (project_files / name).read_bytes() for name in files_in(project_files)
        } == after_first
    assert (project_files.parent / "outside.txt").read_text() == "outside a"
