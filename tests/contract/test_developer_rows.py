"""Test that the rows of bad inputs about `execute_command`, `browser_action` and `preview_scene`
get their codes over REST and MCP.

Directives in addition to those of bad_inputs.py: `$mode` developer, `$script` (the script's text),
`$package_json` (missing or broken), `$terre` (hangs, off, or another address).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.contract.bad_inputs import FOLDER, Row, over_both_apis, rows
from tests.support.browser.page_server import PageResponse, PageServer, html, serve_pages
from tests.support.runners.tool_client import ToolClient

SURFACE = "mcp+rest:developer-tools"
LINES = enumerate((FOLDER / "bad_inputs_developer.jsonl").read_text().splitlines(), 1)
ROWS = [Row(**json.loads(line), source=f"developer:{number}") for number, line in LINES]
ROWS += rows(SURFACE)
SCRIPT = "touch ran; printf '<%s>\\n'"


@pytest.fixture
def local_server() -> Iterator[PageServer]:
    """Serve the developer's local site, which also links to other hosts."""
    with serve_pages() as server:
        server.add(
            "/redirect_out", PageResponse(status=302, headers={"Location": "http://evil.test/"})
        )
        server.add("/api/test", html("late", delay=3600.0))
        yield server


@pytest.fixture
def set_up(
    project: Path, settings: Any, local_server: PageServer, closed_port: int
) -> Callable[[Row], dict[str, Any]]:
    """Set up what a row's directives request and return the rest of its input."""

    def make(row: Row) -> dict[str, Any]:
        arguments = dict(row.input)
        directives = {name: arguments.pop(name) for name in list(arguments) if name.startswith("$")}
        addresses = {"hangs": local_server.url(""), "off": f"http://127.0.0.1:{closed_port}"}
        terre = directives.get("$terre", "off")
        limit_ms = 700 if row.expect_code == "E_TIMEOUT" else 10_000
        settings.WORKSPACE_POLICY = replace(
            settings.WORKSPACE_POLICY,
            developer=directives.get("$mode") == "developer",
            command_timeout_ms=limit_ms,
            browser_timeout_ms=limit_ms,
            preview_url=addresses.get(terre, terre),
        )
        script = directives.get("$script", SCRIPT)
        scripts = {"scripts": dict.fromkeys(("dev", "build", "lint"), script)}
        text = "{" if directives.get("$package_json") == "broken" else json.dumps(scripts)
        if directives.get("$package_json") != "missing":
            (project / "package.json").write_text(text)
        if str(arguments.get("url", "")).endswith("/redirect_out"):
            arguments["url"] = local_server.url("/redirect_out")
        return arguments

    return make


@pytest.mark.parametrize(("tool_client", "row"), over_both_apis(ROWS), indirect=["tool_client"])
def test_each_row_gets_its_code(
    row: Row,
    tool_client: ToolClient,
    project: Path,
    set_up: Callable[[Row], dict[str, Any]],
    background_worker: None,
) -> None:
    code, answer = tool_client.call(row.tool, set_up(row))
    assert code == row.expect_code, answer
    assert not (project / "leaked").exists()
    assert (project / "ran").exists() == (
        row.tool == "execute_command" and code == "OK" and "$script" not in row.input
    )
    assert str(project) not in json.dumps(answer)
    assert [
        process for process in psutil.process_iter(["cwd"]) if process.info["cwd"] == str(project)
    ] == []


def test_a_direct_call_finds_the_page_that_the_previous_call_opened(
    tool_client: ToolClient,
    project: Path,
    set_up: Callable[[Row], dict[str, Any]],
    local_server: PageServer,
    background_worker: None,
) -> None:
    set_up(ROWS[0])
    page = "<title>Game</title><button onclick='fetch(\"/pressed\")'>Start</button>"
    url = local_server.add("/game", page)
    assert tool_client.call("browser_action", {"action": "open", "url": url}) == (
        "OK",
        {"ok": True},
    )
    assert tool_client.call("browser_action", {"action": "click", "selector": "button"})[0] == "OK"
    assert tool_client.call("browser_action", {"action": "screenshot", "path": "a.png"})[0] == "OK"
    assert (project / "a.png").read_bytes().startswith(b"\x89PNG")
    assert local_server.hits["/pressed"] == 1
