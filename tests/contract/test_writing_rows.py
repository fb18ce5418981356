"""Test every row of bad inputs for the tools that write and restore, over REST and MCP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runners.targets.workspaces import state_folder
from tests.contract.bad_inputs import HERE, SHARED
from tests.support.tool_client import ToolClient
from tests.support.workspace_calls import files_in

pytest_plugins = ["tests.support.rest_fixtures", "tests.support.workspace_fixtures"]
TOOLS_PATH = ("write_to_file", "replace_in_file", "list_snapshots", "restore_snapshot")
OURS = HERE / "bad_inputs_writing.jsonl"
ELSEWHERE = {"$disk_full": "tests/faults/test_workspace_writes.py fills a disk"}
BROKEN, HALF = "snap_20251101T093210_badc0de0", "snap_20251101T093210_0000badd"


def rows() -> list[Any]:
    """Return the rows, each with its reason in the test id."""
    files = [path for path in (OURS, SHARED) if path.exists()]
    told = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    wanted = [
        row for row in told if row["surface"] == "mcp+rest:workspace" and row["call"] in TOOLS_PATH
    ]
    return [
        pytest.param(row, id=f"{row['call']}-{row['expect_code']}-{row['why'][:50]}")
        for row in wanted
        if not ELSEWHERE.keys() & row["input"].keys()
    ]


@pytest.fixture
def scenery(project: Path) -> Path:
    """Create the files and snapshots that the rows refer to."""
    (project / "a.txt").write_text("a.b\n")
    (project / "image.png").write_bytes(b"\x89PNG\r\n\x00")
    (project / "link_to_etc").symlink_to("/etc")
    (project.parent / "outside.txt").write_text("outside a")
    (project / "hardlink_to_outside.txt").hardlink_to(project.parent / "outside.txt")
    kept = state_folder(project) / "snapshots"
    kept.mkdir(exist_ok=True)
    (kept / f"{BROKEN}.txt").write_text("x")
    (kept / f"{BROKEN}.meta.json").write_text('{"id":')
    (kept / f"{HALF}.meta.json").write_text("{}")
    return project


def steps_of(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the calls that a row sends, in order."""
    given = dict(row["input"])
    if "$sequence" in given:
        return list(given["$sequence"])
    if not given.pop("$after_use_with_other_content", False):
        return [given]
    used = {**given, "content": "other"}
    return [{**used, "dryRun": True}, used, given]


@pytest.mark.parametrize("row", rows())
def test_a_row_gets_its_code(tool_client: ToolClient, scenery: Path, row: dict[str, Any]) -> None:
    before = {name: (scenery / name).read_bytes() for name in files_in(scenery)}
    *first, last = steps_of(row)
    for step in first:
        assert tool_client.call(row["call"], step)[0] == "OK"
    done = {name: (scenery / name).read_bytes() for name in files_in(scenery)} if first else before
    code, told = tool_client.call(row["call"], last)
    assert code == row["expect_code"], told
    assert str(scenery) not in json.dumps(told)
    if code != "OK":
        assert {name: (scenery / name).read_bytes() for name in files_in(scenery)} == done
    assert (scenery.parent / "outside.txt").read_text() == "outside a"
