"""Test every row of bad inputs of the workspace tools over REST and MCP: its code, and that a
refused call changes no file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from runners.targets.workspaces import state_folder
from runners.workspace.tools.write_to_file import RESPONSE
from tests.contract.bad_inputs import Row, over_both_apis, rows
from tests.support.runners.tool_client import ToolClient
from tests.support.workspace.workspace_calls import files_in

ROWS = rows("mcp+rest:workspace")  # test_developer_rows.py sends those of developer tools
UNREADABLE = "no_read_perm.txt"
LEFT_OUT = {
    "$disk_full": "tests/faults/test_workspace_writes.py fills a disk",
    UNREADABLE: "root may read it; workspace/files/test_sandbox.py uses another user",
}
BROKEN, HALF = "snap_20251101T093210_badc0de0", "snap_20251101T093210_0000badd"


def reason_left_out(row: Row) -> str | None:
    """Return why these tests do not send a row, or None."""
    left_out = LEFT_OUT if os.geteuid() == 0 else {"$disk_full": LEFT_OUT["$disk_full"]}
    text = str(row.input)
    return next((reason for substring, reason in left_out.items() if substring in text), None)


SENT = [row for row in ROWS if reason_left_out(row) is None]


@pytest.fixture
def project_files(project: Path) -> Path:
    """Create the files and snapshots that the rows refer to; return the project's folder."""
    (project.parent / "outside.txt").write_text("outside a")
    texts = {
        "ok.txt": "fine\n",
        "ok_100b.txt": "x" * 100,
        "a.txt": "aab\n",
        ".env": "KEY=1",
        ".git/config": "[core]",
        "sub/.git/config": "[core]",
        "game/scene/a.txt": "a:b;\n",
        "hardlink.txt": "x",
        UNREADABLE: "x",
    }
    for name, text in texts.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    (project / UNREADABLE).chmod(0)
    (project / "big_6mb.txt").touch()
    os.truncate(project / "big_6mb.txt", 6 * 1024 * 1024)
    (project / "utf16.txt").write_bytes("text".encode("utf-16"))
    (project / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff")
    (project / "link_to_etc").symlink_to("/etc")
    (project / "link_dangling_out").symlink_to(project.parent / "absent")
    (project / "hardlink_to_outside.txt").hardlink_to(project.parent / "outside.txt")
    os.mkfifo(project / "game" / "dev_zero")  # a pipe: reading it blocks forever
    snapshots = state_folder(project) / "snapshots"
    snapshots.mkdir(exist_ok=True)
    (snapshots / f"{BROKEN}.txt").write_text("x")
    (snapshots / f"{BROKEN}.meta.json").write_text('{"id":')
    (snapshots / f"{HALF}.meta.json").write_text("{}")
    return project


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of each file."""
    names = [name for name in files_in(folder) if name != UNREADABLE]
    return {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}


def calls_of(row: Row) -> list[dict[str, Any]]:
    """Return the arguments of the calls that a row sends, in order."""
    arguments = dict(row.input)
    if "$sequence" in arguments:
        return list(arguments["$sequence"])
    if not arguments.pop("$after_use_with_other_content", False):
        return [arguments]
    earlier = {**arguments, "content": "other"}
    return [{**earlier, "dryRun": True}, {**earlier, "dryRun": False}, arguments]


def test_every_row_is_sent_or_has_its_reason() -> None:
    assert len(ROWS) - len(SENT) <= 2


@pytest.mark.parametrize(("tool_client", "row"), over_both_apis(SENT), indirect=["tool_client"])
def test_a_bad_input_gets_its_code(tool_client: ToolClient, project_files: Path, row: Row) -> None:
    *first, last = calls_of(row)
    for arguments in first:
        assert tool_client.call(row.tool, arguments)[0] == "OK"
    before = contents(project_files)
    code, answer = tool_client.call(row.tool, last)
    assert code == row.expect_code, answer
    assert str(project_files) not in json.dumps(answer)
    if code != "OK":
        assert len(str(answer)) < 5000
        assert contents(project_files) == before
    assert (project_files.parent / "outside.txt").read_text() == "outside a"
    assert tool_client.call("read_file", {"path": "ok.txt"})[0] == "OK"


def test_a_dry_run_returns_what_the_schema_defines(tool_client: ToolClient, project: Path) -> None:
    arguments = {"path": "n.txt", "content": "a\nb", "dryRun": True}
    code, answer = tool_client.call("write_to_file", arguments)
    assert (code, answer["applied"]) == ("OK", False)
    assert set(answer) <= set(RESPONSE["properties"])
    (hunk,) = answer["diff"]["hunks"]
    assert hunk["linesNew"] == ["a", "b"]
