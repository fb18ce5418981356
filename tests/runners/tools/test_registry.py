"""The registry finds a tool by its name and imports no other tool."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool

IMPORTED = """
import sys
from runners.tools.registry import get_tool, is_workspace_tool
{statement}
folders = ("runners.workspace.tools.", "runners.browser.tools.", "runners.browser.actions.")
print(*(name.rpartition(".")[2] for name in sorted(sys.modules) if name.startswith(folders)))
"""


@pytest.mark.parametrize(
    ("statement", "imported"),
    [
        ("assert get_tool('read_file').name == 'read_file'", ["read_file"]),
        ("assert get_tool('browser_click').agent_only", ["browser_click"]),
        ("assert get_tool('bash.exec') is None", []),
        ("assert get_tool('') is None and get_tool('__init__') is None", []),
        ("assert is_workspace_tool('read_file') and not is_workspace_tool('read_page')", []),
    ],
)
def test_looking_up_a_tool_imports_no_other_tool(statement: str, imported: list[str]) -> None:
    script = IMPORTED.format(statement=statement)
    output = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert output.split() == imported


class NoArguments(Closed):
    """No arguments."""


def test_a_tool_with_another_name_than_its_module_is_refused() -> None:
    async def read_twice(args: NoArguments, ctx: ToolContext) -> Mapping[str, Any]:
        return {}

    read_twice.__module__ = "runners.workspace.tools.read_file"
    read_twice.__annotations__ = {"args": NoArguments}
    register = tool("read_twice", kind="workspace", effect=Effect.READ, timeout_ms=1000)
    with pytest.raises(ValueError, match="has to be named read_twice, not read_file"):
        register(read_twice)
