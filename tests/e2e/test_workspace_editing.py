"""Test how an agent host edits a real project: preview, write, conflict, restore; then the workflow
of S4 §5, whose scene is opened in a real browser.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.support.browser.page_server import PageResponse, PageServer, serve_pages
from tests.support.installation.mcp_process import call, connected, own_database, started

pytestmark = pytest.mark.anyio
SCENE = "game/scene/beach_date.txt"
TEXT = "changeBg:beach.jpg -next;\n雪乃:海风真舒服呢;\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Start an installation with a worker, and a local server that answers as WebGAL Terre does."""
    with serve_pages() as terre:
        _answer_as_terre(terre)
        env = own_database(tmp_path_factory.mktemp("project")) | {
            "CONTINUITY_PREVIEW_URL": terre.url(""),
            "CONTINUITY_LANG": "EN",
        }
        with started("worker", env=env):
            yield env


def _answer_as_terre(server: PageServer) -> None:
    server.add("/api/test", PageResponse(b"API Test OK", mime="text/html; charset=utf-8"))
    server.add("/preview", "<title>game</title><script>console.log('scene is shown')</script>")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a game with one scene and one picture."""
    root = tmp_path / "my game"
    for folder in ("scene", "background"):
        (root / "game" / folder).mkdir(parents=True)
    (root / "game/scene/start.txt").write_text("changeScene:beach_date.txt;\n", "utf-8")
    (root / "game/config.txt").write_text("Game_name:game;\nGame_key:1;\n", "utf-8")
    (root / "game/background/beach.jpg").write_bytes(b"\xff\xd8\xff")
    return root


async def call_refused(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool, assert that it fails, and return the S4 error."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    (block,) = result.content
    error: dict[str, Any] = json.loads(getattr(block, "text", ""))["error"]
    return error


async def write(client: Client, path: str, content: str) -> dict[str, Any]:
    """Preview a write, then perform it."""
    preview = await call(client, "write_to_file", path=path, content=content, dryRun=True)
    assert (preview["applied"], preview["diff"]["type"]) == (False, "line")
    return await call(client, "write_to_file", path=path, content=content, dryRun=False)


@pytest.mark.slow
async def test_a_scene_is_written_validated_and_previewed(
    env: dict[str, str], project: Path
) -> None:
    # The server is started in the project's folder, as hosts do.
    async with connected(env, cwd=project) as client:
        assert (await write(client, SCENE, TEXT))["bytesWritten"] == len(TEXT.encode())
        checked = await call(client, "validate_script", path=SCENE)
        assert checked == {"valid": True, "diagnostics": []}
        invalid = await call(client, "validate_script", content="changeBg:beech.jpg;\n")
        assert "beach.jpg" in invalid["diagnostics"][0]["fixHint"]
        preview = await call(client, "preview_scene", scenePath=SCENE)
        assert preview["url"].startswith(env["CONTINUITY_PREVIEW_URL"])
        assert "beach_date" in preview["url"]
        assert "scene is shown" in str(preview["logs"])


@pytest.mark.slow
@pytest.mark.parametrize("where", ["/", "home"])
async def test_the_tools_are_disabled_without_a_project(
    env: dict[str, str], where: str, tmp_path: Path
) -> None:
    cwd = Path("/") if where == "/" else tmp_path
    async with connected(env | {"HOME": str(tmp_path)}, cwd=cwd) as client:
        error = await call_refused(client, "list_files", path=".")
        assert error["code"] == "E_TOOL_DISABLED"
        assert "--workspace" in error["message"]


@pytest.mark.slow
async def test_selecting_the_developer_toolset_enables_developer_mode(
    env: dict[str, str], project: Path
) -> None:
    (project / "package.json").write_text('{"scripts": {"lint": "echo fine"}}')
    options = ("--toolsets", "workspace,developer", "--workspace", str(project))
    async with connected(env, *options) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert len(names) == 16
        assert "execution" in await call(client, "get_runtime_info")
        result = await call(client, "execute_command", scriptName="lint")
        assert result["ok"] is True
        error = await call_refused(client, "execute_command", scriptName="rm")
        assert error["code"] == "E_POLICY_VIOLATION"
