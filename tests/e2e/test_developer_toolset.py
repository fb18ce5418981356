"""Test how an agent host runs a script of a real project: the option that selects the toolset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.support.installation.mcp_process import call, connected, own_database

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def call_refused(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool, assert that it fails, and return the S4 error."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    (block,) = result.content
    error: dict[str, Any] = json.loads(getattr(block, "text", ""))["error"]
    return error


@pytest.mark.slow
async def test_selecting_the_developer_toolset_enables_developer_mode(tmp_path: Path) -> None:
    env = own_database(tmp_path)
    (project := tmp_path / "my game").mkdir()
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
