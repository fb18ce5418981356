"""A workspace to write to, and its tools, called as REST and MCP call them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runners.invocation.arguments import check_args
from runners.tools.base import ToolContext
from runners.tools.registry import get_tool
from runners.workspace.workspace import ProjectWorkspace, WorkspacePolicy

SCENE = "game/scene/start.txt"
SCENE_TEXT = "".join(f"雪乃: 第 {number} 句;\n" for number in range(1, 31))


def workspace_at(folder: Path, *, principal: str = "local", **policy: Any) -> ProjectWorkspace:
    """Return a workspace in a folder that contains its root and its state, side by side."""
    (folder / "root").mkdir(exist_ok=True)
    allowed = WorkspacePolicy(**{"language": "EN", **policy})
    return ProjectWorkspace("target_1", folder / "root", folder / "state", allowed, principal)


def call_tool(
    workspace: ProjectWorkspace | None, name: str, args: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Call a workspace tool; its exceptions propagate."""
    found = get_tool(name)
    assert found is not None, name

    async def save_nothing(*_: Any, **__: Any) -> str:
        raise AssertionError("a writing tool keeps no artifact")

    ctx = ToolContext(
        run_id="run_1",
        trust="local",
        deadline=time.monotonic() + 60,
        save_artifact=save_nothing,
        emit=lambda *_: None,
        workspace=workspace,
    )
    checked = found.input_model.model_validate(check_args(found, args))
    return asyncio.run(_awaited(found.function(checked, ctx)))


async def _awaited(work: Any) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = await work
    return answer


def files_in(folder: Path) -> list[str]:
    """Return the paths of all files below a folder, including hidden files."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
