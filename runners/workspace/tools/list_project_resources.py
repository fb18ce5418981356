"""The tool `list_project_resources`: list the images, sounds and scenes of a game (S4 §2.1)."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Mapping
from typing import Any

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runners.workspace.call_context import require_workspace, thread_deadline
from runners.workspace.contract_schema import contract_schema
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.hints import READ_HINTS, add_hints
from runners.workspace.webgal.project import list_files_below
from runners.workspace.workspace import ProjectWorkspace

REQUEST = contract_schema(
    "list_project_resources.request",
    {},
)
RESPONSE = contract_schema(
    "list_project_resources.response",
    {
        "backgrounds": {"type": "array", "items": {"type": "string"}},
        "figures": {"type": "array", "items": {"type": "string"}},
        "bgm": {"type": "array", "items": {"type": "string"}},
        "vocals": {"type": "array", "items": {"type": "string"}},
        "scenes": {"type": "array", "items": {"type": "string"}},
    },
    ["backgrounds", "figures", "bgm", "vocals", "scenes"],
)
_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".svg", ".avif", ".apng"})
# Videos and animated skeletons, which the engine also accepts as backgrounds and figures.
_ANIMATED = frozenset({".mp4", ".webm", ".mkv", ".skel"})
_SOUNDS = frozenset({".mp3", ".ogg", ".wav", ".m4a", ".aac", ".flac", ".opus", ".webm"})
# For each list its folder, and the formats that the engine accepts there.
_LISTS = {
    "backgrounds": ("game/background", _IMAGES | _ANIMATED),
    "figures": ("game/figure", _IMAGES | _ANIMATED | {".json", ".jsonl"}),
    "bgm": ("game/bgm", _SOUNDS),
    "vocals": ("game/vocal", _SOUNDS),
    "scenes": ("game/scene", frozenset({".txt"})),
}


class ListProjectResources(Closed):
    """No arguments."""


@tool(
    "list_project_resources",
    kind="workspace",
    effect=Effect.READ,
    timeout_ms=30_000,
    request=REQUEST,
    response=RESPONSE,
)
async def list_project_resources(args: ListProjectResources, ctx: ToolContext) -> Mapping[str, Any]:
    """List the game's backgrounds, figures, music, voices and scenes.

    Paths are relative to each kind's folder (game/background, game/figure, game/bgm, game/vocal,
    game/scene), as in scripts. The list of a folder that does not exist is empty.
    """
    return await asyncio.to_thread(_list, require_workspace(ctx), thread_deadline(ctx))


def _list(workspace: ProjectWorkspace, deadline: float) -> dict[str, list[str]]:
    with (
        add_hints(workspace, READ_HINTS),
        Sandbox(workspace.root, workspace.policy.forbidden) as sandbox,
    ):
        return {
            name: [
                path
                for path in list_files_below(sandbox, folder, deadline)
                if _has_format(path, formats)
            ]
            for name, (folder, formats) in _LISTS.items()
        }


def _has_format(path: str, formats: frozenset[str]) -> bool:
    name = posixpath.basename(path)
    return not name.startswith(".") and posixpath.splitext(name)[1].lower() in formats
