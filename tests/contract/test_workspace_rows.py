"""Test every row of bad inputs of the workspace tools over REST and MCP."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runners.workspace.tools.write_to_file import RESPONSE
from tests.contract.bad_inputs import Row, over_both_apis, rows
from tests.contract.workspace_files import (
    prepare,
    project_files,  # noqa: F401  (a fixture)
)
from tests.support.runners.tool_client import ToolClient

ROWS = rows("mcp+rest:workspace")  # test_developer_rows.py sends those of developer tools
LEFT_OUT = {
    "$disk_full": "tests/faults/test_workspace_writes.py fills a disk",
    "no_read_perm": "root may read it; workspace/files/test_sandbox.py uses another user",
}


def reason_left_out(row: Row) -> str | None:
    """Return why these tests do not send a row, or None."""
    text = str(row.input)
    left_out = LEFT_OUT if os.geteuid() == 0 else {"$disk_full": LEFT_OUT["$disk_full"]}
    return next((reason for substring, reason in left_out.items() if substring in text), None)


SENT = [row for row in ROWS if reason_left_out(row) is None]
SINGLE = [row for row in SENT if "$sequence" not in row.input]
SEQUENCES = [row for row in SENT if "$sequence" in row.input]


def test_every_row_is_sent_or_has_its_reason() -> None:
    assert len(SINGLE) + len(SEQUENCES) == len(SENT)
    assert len(ROWS) - len(SENT) <= 2


def send(tool_client: ToolClient, row: Row, args: Mapping[str, Any]) -> str:
    """Send a row's call and return its code; assert that the size of the answer is bounded."""
    code, answer = tool_client.call(row.tool, dict(args))
    assert code == "OK" or len(str(answer)) < 5000
    return code


@pytest.mark.usefixtures("project_files")
@pytest.mark.parametrize(("tool_client", "row"), over_both_apis(SINGLE), indirect=["tool_client"])
def test_a_bad_input_gets_its_code(
    tool_client: ToolClient, project: Path, settings: Any, row: Row
) -> None:
    args = prepare(row.input, project, settings)
    if "$after_use_with_other_content" in row.input:
        first = {"path": args["path"], "content": "first"}
        key = {"idempotencyKey": args["idempotencyKey"]}
        assert send(tool_client, row, {**first, "dryRun": True}) == "OK"
        assert send(tool_client, row, {**first, "dryRun": False, **key}) == "OK"
    assert send(tool_client, row, args) == row.expect_code
    assert tool_client.call("read_file", {"path": "ok.txt"})[0] == "OK"


@pytest.mark.usefixtures("project_files")
@pytest.mark.parametrize(
    ("tool_client", "row"), over_both_apis(SEQUENCES), indirect=["tool_client"]
)
def test_a_write_that_differs_from_its_preview_is_refused(
    tool_client: ToolClient, project: Path, row: Row
) -> None:
    *before, last = row.input["$sequence"]
    assert [send(tool_client, row, args) for args in before] == ["OK"] * len(before)
    assert send(tool_client, row, last) == row.expect_code
    assert (project / "a.txt").read_text() == "aab\n"


def test_a_dry_run_returns_what_the_schema_defines(tool_client: ToolClient, project: Path) -> None:
    code, answer = tool_client.call(
        "write_to_file", {"path": "n.txt", "content": "a\nb", "dryRun": True}
    )
    assert (code, answer["applied"]) == ("OK", False)
    assert set(answer) <= set(RESPONSE["properties"])
    (hunk,) = answer["diff"]["hunks"]
    assert hunk["linesNew"] == ["a", "b"]
