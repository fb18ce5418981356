"""The tool `list_project_resources`: list the pictures, sounds and scenes of a game (S4 §2.1)."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Mapping
from typing import Any

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runners.workspace.call_context import thread_deadline
from runners.workspace.errors import ToolDisabled
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.hints import READ_HINTS, add_hints
from runners.workspace.webgal.project import list_files_below
from runners.workspace.workspace import Workspace

REQUEST: dict[str, Any] = {
    "$id": "list_project_resources.request",
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "properties": {},
}
RESPONSE: dict[str, Any] = {
    "$id": "list_project_resources.response",
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "backgrounds": {"type": "array", "items": {"type": "string"}},
        "figures": {"type": "array", "items": {"type": "string"}},
        "bgm": {"type": "array", "items": {"type": "string"}},
        "vocals": {"type": "array", "items": {"type": "string"}},
        "scenes": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["backgrounds", "figures", "bgm", "vocals", "scenes"],
}
_PICTURES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".svg", ".avif", ".apng"})
# The engine plays these as backgrounds and figures too, and animates skeletons.
_MOVING = frozenset({".mp4", ".webm", ".mkv", ".skel"})
_SOUNDS = frozenset({".mp3", ".ogg", ".wav", ".m4a", ".aac", ".flac", ".opus", ".webm"})
# What each list holds: its folder, and the formats that the engine takes there.
_LISTS = {
    "backgrounds": ("game/background", _PICTURES | _MOVING),
    "figures": ("game/figure", _PICTURES | _MOVING | {".json", ".jsonl"}),
    "bgm": ("game/bgm", _SOUNDS),
    "vocals": ("game/vocal", _SOUNDS),
    "scenes": ("game/scene", frozenset({".txt"})),
}


class ListProjectResources(Closed):
    """Nothing to say: it is about the whole game."""


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
    game/scene), as scripts name them. A folder that is not there has an empty list.
    """
    if ctx.workspace is None:
        raise ToolDisabled("This call has no workspace.")
    return await asyncio.to_thread(_list, ctx.workspace, thread_deadline(ctx))


def _list(workspace: Workspace, deadline: float) -> dict[str, list[str]]:
    with (
        add_hints(workspace, READ_HINTS),
        Sandbox(workspace.root, workspace.policy.forbidden) as sandbox,
    ):
        return {
            name: [
                path for path in list_files_below(sandbox, folder, deadline) if _has(path, formats)
            ]
            for name, (folder, formats) in _LISTS.items()
        }


def _has(path: str, formats: frozenset[str]) -> bool:
    name = posixpath.basename(path)
    return not name.startswith(".") and posixpath.splitext(name)[1].lower() in formats
