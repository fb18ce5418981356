"""Test editing a project over REST and MCP in the workflow of S4 §2.5 and §5.1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.runners.tool_client import ToolClient
from tests.support.workspace.diffs import apply_diff

START = "game/scene/start.txt"


def call_ok(tool_client: ToolClient, tool: str, **args: Any) -> dict[str, Any]:
    """Send a call, assert that it succeeds, and return its answer."""
    code, answer = tool_client.call(tool, args)
    assert code == "OK", answer
    return answer


def test_a_scene_is_previewed_written_refused_on_conflict_and_restored(
    tool_client: ToolClient, project: Path
) -> None:
    scene = project / START
    old, new = scene.read_text("utf-8"), "\ufeffchangeBg:none;\r\n雪乃: 海风真舒服呢;"
    arguments = {"path": START, "content": new}

    shown = call_ok(tool_client, "write_to_file", **arguments, dryRun=True)
    assert (shown["applied"], apply_diff(old, shown["diff"]["hunks"])) == (False, new)
    written = call_ok(
        tool_client, "write_to_file", **arguments, dryRun=False, idempotencyKey="once"
    )
    assert scene.read_bytes() == new.encode()
    assert written["bytesWritten"] == len(new.encode())
    assert (
        call_ok(tool_client, "write_to_file", **arguments, dryRun=False, idempotencyKey="once")
        == written
    )

    call_ok(tool_client, "write_to_file", path=START, content="agent", dryRun=True)
    scene.write_text("person", "utf-8")
    code, answer = tool_client.call(
        "write_to_file", {"path": START, "content": "agent", "dryRun": False}
    )
    assert (code, answer["recoverable"]) == ("E_CONFLICT", True)
    assert scene.read_text("utf-8") == "person"

    [snapshot] = call_ok(tool_client, "list_snapshots", path="game/scene", limit=10)["snapshots"]
    assert (snapshot["id"], snapshot["path"]) == (written["snapshotId"], START)
    restored = call_ok(tool_client, "restore_snapshot", snapshotId=snapshot["id"])
    assert restored == {"path": START, "content": old}
    call_ok(tool_client, "write_to_file", **restored, dryRun=True)
    call_ok(tool_client, "write_to_file", **restored, dryRun=False)
    assert scene.read_text("utf-8") == old
