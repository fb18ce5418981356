"""The tool `generate_character_profile`: write a character's definition to the game (S4 §2.7).

The engine itself has no characters; the definition is for people and agents who write scenes. It is
the file game/character/NAME.json and not in game/figure, where the engine treats .json files as
Live2D models.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from stat import S_ISREG
from typing import Annotated, Any

from pydantic import Field, StrictStr

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runners.workspace.call_context import require_workspace, thread_deadline
from runners.workspace.cancellation import run_to_completion
from runners.workspace.contract_schema import contract_schema
from runners.workspace.errors import (
    BadArguments,
    PathDenied,
    PathNotFound,
    WriteConflict,
)
from runners.workspace.files.paths import display_path
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.hints import add_hints
from runners.workspace.webgal.diagnostic import DiagnosticText
from runners.workspace.webgal.nearest import closest, fold_all
from runners.workspace.webgal.project import list_files_below
from runners.workspace.workspace import ProjectWorkspace
from runners.workspace.writing.write_text import LOCK_WAIT_S, change_text

FIGURES, CHARACTERS = "game/figure", "game/character"
MAX_NAME_LENGTH = 100  # characters

REQUEST = contract_schema(
    "generate_character_profile.request",
    {
        "name": {"type": "string", "minLength": 1},
        "imageFile": {"type": "string", "minLength": 1},
        "defaultExpression": {"type": "string"},
    },
    ["name", "imageFile"],
)
RESPONSE = contract_schema(
    "generate_character_profile.response",
    {"success": {"type": "boolean"}},
    ["success"],
)


class GenerateCharacterProfile(Closed):
    """A character and its image."""

    name: Annotated[StrictStr, Field(min_length=1)]
    image_file: Annotated[StrictStr, Field(min_length=1, alias="imageFile")]
    default_expression: StrictStr | None = Field(default=None, alias="defaultExpression")


@tool(
    "generate_character_profile",
    kind="workspace",
    effect=Effect.AT_LEAST_ONCE,
    timeout_ms=30_000,
    request=REQUEST,
    response=RESPONSE,
)
async def generate_character_profile(
    args: GenerateCharacterProfile, ctx: ToolContext
) -> Mapping[str, Any]:
    """Write a character's definition, game/character/NAME.json.

    `imageFile` is an existing file of game/figure, named as in changeFigure. The definition's
    previous content is stored as a snapshot; its other keys are kept.
    """
    workspace = require_workspace(ctx)
    with add_hints(workspace):
        write = asyncio.to_thread(
            _write_profile, args, workspace, ctx.seconds_left(LOCK_WAIT_S), thread_deadline(ctx)
        )
        await run_to_completion(write)
    return {"success": True}


def _write_profile(
    args: GenerateCharacterProfile, workspace: ProjectWorkspace, wait_s: float, deadline: float
) -> None:
    profile = {"name": args.name, "image": _image_of(args.image_file, workspace, deadline)}
    if args.default_expression is not None:
        profile["defaultExpression"] = args.default_expression
    path = f"{CHARACTERS}/{_file_name(args.name)}.json"
    change_text(
        workspace,
        path,
        lambda text: _updated(text, profile, path),
        wait_s=wait_s,
        missing=_to_json(profile),
    )


def _file_name(name: str) -> str:
    """Return a character's name if it is a valid file name; the sandbox checks the rest."""
    if "/" in name or "\\" in name or name.startswith("."):
        raise PathDenied(
            f"{display_path(name)} is not a valid name: it has a slash or begins with a dot.",
            details={"name": display_path(name)},
        )
    if len(name) > MAX_NAME_LENGTH or not name.isprintable() or not name.strip():
        raise BadArguments(
            f"A character's name must have 1 to {MAX_NAME_LENGTH} printable characters.",
            details={"name": display_path(name)},
        )
    return name


def _image_of(name: str, workspace: ProjectWorkspace, deadline: float) -> str:
    """Return the image's path below game/figure.

    Raises:
        PathNotFound: The file does not exist.
        PathDenied, BadArguments: As `Sandbox.stat`.
        WorkspaceTimeout, TooLarge: There are too many files to find a similar name.
    """
    with Sandbox(workspace.root, workspace.policy.forbidden) as sandbox:
        # Validated relative to game/figure, so that the path cannot leave that folder.
        image = sandbox.normalize_path(name.removeprefix(f"{FIGURES}/"))
        path = f"{FIGURES}/{image}"
        with contextlib.suppress(PathNotFound):
            if S_ISREG(sandbox.stat(path).st_mode):
                return image
        files = fold_all(list_files_below(sandbox, FIGURES, deadline))
    closest_file = closest(image, files, max_edits=max(1, len(image) // 3))
    hint = (
        DiagnosticText("near_file", {"near": closest_file[0]})
        if closest_file
        else DiagnosticText("any_file")
    )
    raise PathNotFound(
        f"{display_path(path)} does not exist.",
        hint=hint.render(workspace.policy.language),
        details={"path": display_path(path)},
    )


def _updated(text: str, profile: dict[str, str], path: str) -> str | None:
    """Return the definition with the profile's keys set, None if nothing changes.

    Raises:
        WriteConflict: The file is not a JSON object.
    """
    try:
        current = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        current = None
    if not isinstance(current, dict):
        raise WriteConflict(
            f"{display_path(path)} exists and is not a character's definition.",
            details={"path": display_path(path)},
        )
    return None if current | profile == current else _to_json(current | profile)


def _to_json(definition: Mapping[str, Any]) -> str:
    return json.dumps(definition, ensure_ascii=False, indent=2) + "\n"
