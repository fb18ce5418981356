"""The tool `generate_character_profile`: keep a character's definition in the game (S4 §2.7).

The engine knows no characters; the definition is for people and agents who write scenes. It is the
file game/character/NAME.json, away from game/figure, whose .json files the engine takes for Live2D.
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
from runners.workspace.call_context import thread_deadline
from runners.workspace.cancellation import run_to_completion
from runners.workspace.errors import (
    BadArguments,
    PathDenied,
    PathNotFound,
    ToolDisabled,
    WriteConflict,
)
from runners.workspace.files.paths import display_path
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.hints import add_hints
from runners.workspace.webgal.diagnostic import DiagnosticText
from runners.workspace.webgal.nearest import closest, fold_all
from runners.workspace.webgal.project import list_files_below
from runners.workspace.workspace import Workspace
from runners.workspace.writing.write_text import LOCK_WAIT_S, change_text

FIGURES, CHARACTERS = "game/figure", "game/character"
LONGEST_NAME = 100  # characters

REQUEST: dict[str, Any] = {
    "$id": "generate_character_profile.request",
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "imageFile": {"type": "string", "minLength": 1},
        "defaultExpression": {"type": "string"},
    },
    "required": ["name", "imageFile"],
}
RESPONSE: dict[str, Any] = {
    "$id": "generate_character_profile.response",
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "properties": {"success": {"type": "boolean"}},
    "required": ["success"],
}


class GenerateCharacterProfile(Closed):
    """A character, and the picture that shows it."""

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

    `imageFile` is a file of game/figure, as changeFigure names it, and must be there. What the
    definition was before is kept as a snapshot; keys of it that are not said here stay.
    """
    if ctx.workspace is None:
        raise ToolDisabled("This call has no workspace.")
    with add_hints(ctx.workspace):
        defining = asyncio.to_thread(
            _define, args, ctx.workspace, ctx.seconds_left(LOCK_WAIT_S), thread_deadline(ctx)
        )
        await run_to_completion(defining)
    return {"success": True}


def _define(
    args: GenerateCharacterProfile, workspace: Workspace, wait_s: float, deadline: float
) -> None:
    said = {"name": args.name, "image": _image_of(args.image_file, workspace, deadline)}
    if args.default_expression is not None:
        said["defaultExpression"] = args.default_expression
    path = f"{CHARACTERS}/{_file_name(args.name)}.json"
    change_text(
        workspace,
        path,
        lambda was: _changed(was, said, path),
        wait_s=wait_s,
        missing=_text_of(said),
    )


def _file_name(name: str) -> str:
    """Return a character's name if a file may have it; the sandbox judges the rest."""
    if "/" in name or "\\" in name or name.startswith("."):
        raise PathDenied(
            f"{display_path(name)} cannot be the name of a file: it has a slash or begins with a dot.",
            details={"name": display_path(name)},
        )
    if len(name) > LONGEST_NAME or not name.isprintable() or not name.strip():
        raise BadArguments(
            f"A character's name has 1 to {LONGEST_NAME} printable characters.",
            details={"name": display_path(name)},
        )
    return name


def _image_of(name: str, workspace: Workspace, deadline: float) -> str:
    """Return the image's path below game/figure.

    Raises:
        PathNotFound: There is no such file.
        PathDenied, BadArguments: As the sandbox says.
        WorkspaceTimeout, TooLarge: There are too many files to name one like it.
    """
    with Sandbox(workspace.root, workspace.policy.forbidden) as sandbox:
        # Judged from game/figure, which it may leave as little as the root.
        image = sandbox.normalize_path(name.removeprefix(f"{FIGURES}/"))
        path = f"{FIGURES}/{image}"
        with contextlib.suppress(PathNotFound):
            if S_ISREG(sandbox.stat(path).st_mode):
                return image
        files = fold_all(list_files_below(sandbox, FIGURES, deadline))
    near = closest(image, files, max_edits=max(1, len(image) // 3))
    hint = DiagnosticText("near_file", {"near": near[0]}) if near else DiagnosticText("any_file")
    raise PathNotFound(
        f"There is no {display_path(path)}.",
        hint=hint.render(workspace.policy.language),
        details={"path": display_path(path)},
    )


def _changed(was: str, said: dict[str, str], path: str) -> str | None:
    """Return the definition with what is said now, None where it says that already.

    Raises:
        WriteConflict: The file holds something else.
    """
    try:
        known = json.loads(was.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        known = None
    if not isinstance(known, dict):
        raise WriteConflict(
            f"{display_path(path)} is there and is no definition of a character.",
            details={"path": display_path(path)},
        )
    return None if known | said == known else _text_of(known | said)


def _text_of(definition: Mapping[str, Any]) -> str:
    return json.dumps(definition, ensure_ascii=False, indent=2) + "\n"
