"""Test the S4 codes that no bad input causes, each from its real cause, over REST and MCP; the rows
of bad inputs cover the others.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runners.browser.pool.runtime import get_runtime
from runners.invocation.event_loop import get_loop
from runners.invocation.workspace_errors import CODES, STATUS
from runners.targets.workspaces import state_folder
from tests.support.browser.page_server import PageResponse, PageServer, serve_pages
from tests.support.runners.tool_client import ToolClient

CAUSED_HERE = {"E_INTERNAL", "E_IO", "E_LINT_FAIL", "E_PREVIEW_FAIL", "E_UNSUPPORTED"}


def test_every_code_of_s4_has_a_cause_in_a_test() -> None:
    files = Path(__file__).parent.glob("bad_inputs_*.jsonl")  # a test runs the rows of each file
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    surfaces = {"mcp+rest:workspace", "mcp+rest:developer-tools"}
    caused_by_rows = {row["expect_code"] for row in rows if row["surface"] in surfaces} - {"OK"}
    assert caused_by_rows | CAUSED_HERE == set(CODES) == set(STATUS)
    assert len(CODES) == 15


@pytest.fixture
def preview(settings: Any) -> Iterator[PageServer]:
    """Serve a local site that answers as WebGAL Terre does, at the project's preview address."""
    with serve_pages() as server:
        server.add("/api/test", PageResponse(b"API Test OK", mime="text/html; charset=utf-8"))
        server.add("/preview", "<title>game</title><p>once upon a time</p>")
        settings.WORKSPACE_POLICY = replace(settings.WORKSPACE_POLICY, preview_url=server.url(""))
        yield server


@pytest.fixture
def full_disk(project: Path) -> Iterator[Path]:
    """Create a project folder on a full disk; without the right to mount one, unwritable."""
    folder = project / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True).returncode == 0
    folder.chmod(0o700 if mounted else 0o500)
    yield folder
    if mounted:
        subprocess.run(["umount", str(folder)], check=True)
    folder.chmod(0o700)


def test_a_full_disk_is_an_io_error(tool_client: ToolClient, full_disk: Path) -> None:
    if os.geteuid() == 0 and not os.path.ismount(full_disk):
        pytest.skip("root may write everywhere, and no disk can be mounted here")
    scene = {"path": "small/a.txt", "content": "x" * 200_000}
    assert tool_client.call("write_to_file", scene | {"dryRun": True})[0] == "OK"
    assert tool_client.call("write_to_file", scene | {"dryRun": False})[0] == "E_IO"
    assert list(full_disk.iterdir()) == []


def test_a_state_folder_that_is_a_file_is_an_internal_error(
    tool_client: ToolClient, project: Path
) -> None:
    (state_folder(project) / "snapshots").write_text("not a folder")
    code, error = tool_client.call("list_snapshots", {})
    assert (code, error["recoverable"]) == ("E_INTERNAL", False)
    assert str(project.parent) not in str(error)


def test_a_script_with_too_many_mistakes_to_list_is_a_lint_error(
    tool_client: ToolClient, project: Path
) -> None:
    script = "a:b\n" * 21_000  # no line ends with ;
    assert tool_client.call("validate_script", {"content": script})[0] == "E_LINT_FAIL"


@pytest.mark.slow
@pytest.mark.usefixtures("background_worker")
def test_a_preview_without_a_server_fails(
    tool_client: ToolClient, project: Path, settings: Any
) -> None:
    (project / "game/config.txt").write_text("Game_name:game;\n")
    policy = replace(settings.WORKSPACE_POLICY, preview_url="http://127.0.0.1:9")
    settings.WORKSPACE_POLICY = policy
    code, error = tool_client.call("preview_scene", {})
    assert (code, error["recoverable"]) == ("E_PREVIEW_FAIL", True)


@pytest.mark.slow
@pytest.mark.usefixtures("background_worker")
def test_a_preview_without_a_browser_is_unsupported(
    tool_client: ToolClient,
    project: Path,
    preview: PageServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (project / "game/config.txt").write_text("Game_name:game;\n")
    get_loop().submit(get_runtime().close()).result(30)  # so that the next call starts a browser
    monkeypatch.setenv("CONTINUITY_CHROMIUM", "/nowhere/chromium")
    assert tool_client.call("preview_scene", {})[0] == "E_UNSUPPORTED"
