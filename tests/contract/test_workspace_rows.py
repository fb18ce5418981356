"""Test every row of bad inputs of workspace and developer tools over REST and MCP."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runners.workspace.tools.write_to_file import RESPONSE
from tests.contract.bad_inputs import Row, rows
from tests.contract.workspace_scenery import (
    hang,
    prepare,
    preview,  # noqa: F401  (a fixture)
    scenery,  # noqa: F401  (a fixture)
)
from tests.support.page_server import PageServer
from tests.support.tool_client import ToolClient

pytest_plugins = ["tests.support.rest_fixtures", "tests.support.workspace_fixtures"]

ROWS = rows("mcp+rest:workspace") + rows("mcp+rest:developer-tools")
ELSEWHERE = {
    "$disk_full": "tests/faults/test_workspace_writes.py fills a disk",
    "no_read_perm": "root may read it; tests/unit/test_workspace_sandbox.py asks as another user",
}
CARRIED = ("preview_scene", "browser_action")


def reason_elsewhere(row: Row) -> str | None:
    """Return why these tests do not send a row, or None."""
    text = str(row.input)
    marks = ELSEWHERE if os.geteuid() == 0 else {"$disk_full": ELSEWHERE["$disk_full"]}
    return next((reason for mark, reason in marks.items() if mark in text), None)


HERE = [row for row in ROWS if reason_elsewhere(row) is None]
SIMPLE = [row for row in HERE if row.tool not in CARRIED and "$sequence" not in row.input]
WITH_PAGES = [row for row in HERE if row.tool in CARRIED]
SEQUENCES = [row for row in HERE if "$sequence" in row.input]


def test_every_row_is_sent_or_has_its_reason() -> None:
    assert len(SIMPLE) + len(WITH_PAGES) + len(SEQUENCES) == len(HERE)
    assert len(ROWS) - len(HERE) <= 2


def send(tool_client: ToolClient, row: Row, args: Mapping[str, Any]) -> str:
    """Send a row's call and return its code; assert that the size of the answer is bounded."""
    code, told = tool_client.call(row.tool, dict(args))
    assert code == "OK" or len(str(told)) < 5000
    return code


@pytest.mark.usefixtures("scenery")
@pytest.mark.parametrize("row", SIMPLE, ids=str)
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


@pytest.mark.usefixtures("scenery")
@pytest.mark.parametrize("row", SEQUENCES, ids=str)
def test_a_write_that_differs_from_its_preview_is_refused(
    tool_client: ToolClient, project: Path, row: Row
) -> None:
    *before, last = row.input["$sequence"]
    assert [send(tool_client, row, args) for args in before] == ["OK"] * len(before)
    assert send(tool_client, row, last) == row.expect_code
    assert (project / "a.txt").read_text() == "aab\n"


@pytest.mark.usefixtures("scenery", "background_worker")
@pytest.mark.parametrize("row", WITH_PAGES, ids=str)
def test_a_bad_page_gets_its_code(
    tool_client: ToolClient,
    project: Path,
    settings: Any,
    preview: PageServer,  # noqa: F811
    row: Row,
) -> None:
    args = prepare(row.input, project, settings)
    if "$terre" in row.input:
        hang(preview, settings)
    if "redirect_out" in str(args):
        args["url"] = preview.url("/redirect_out")
    assert send(tool_client, row, args) == row.expect_code


def test_a_dry_run_returns_what_the_schema_defines(tool_client: ToolClient, project: Path) -> None:
    code, told = tool_client.call(
        "write_to_file", {"path": "n.txt", "content": "a\nb", "dryRun": True}
    )
    assert (code, told["applied"]) == ("OK", False)
    assert set(told) <= set(RESPONSE["properties"])
    (hunk,) = told["diff"]["hunks"]
    assert hunk["linesNew"] == ["a", "b"]
