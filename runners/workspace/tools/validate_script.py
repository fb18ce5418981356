"""The tool `validate_script`: check a WebGAL script (S4 §2.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Self

from pydantic import StrictStr, model_validator

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runners.workspace.call_context import require_workspace, thread_deadline
from runners.workspace.contract_schema import contract_schema
from runners.workspace.errors import NotText, ParseFailed, TooLarge
from runners.workspace.files.sandbox import Sandbox, decode_text
from runners.workspace.hints import add_hints
from runners.workspace.webgal.checks import check_script
from runners.workspace.webgal.project import SCENE_BYTES, Project
from runners.workspace.workspace import ProjectWorkspace

REQUEST = contract_schema(
    "validate_script.request",
    {"path": {"type": "string"}, "content": {"type": "string"}},
    oneOf=[{"required": ["path"]}, {"required": ["content"]}],
)
RESPONSE = contract_schema(
    "validate_script.response",
    {
        "valid": {"type": "boolean"},
        "diagnostics": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "line": {"type": "integer", "minimum": 1},
                    "kind": {"type": "string", "enum": ["syntax", "resource", "style"]},
                    "message": {"type": "string"},
                    "fixHint": {"type": "string"},
                },
                "required": ["line", "kind", "message"],
            },
        },
    },
    ["valid", "diagnostics"],
)


class ValidateScript(Closed):
    """A script: a file of the workspace, or its text."""

    path: StrictStr | None = None
    content: StrictStr | None = None

    @model_validator(mode="after")
    def _require_one(self) -> Self:
        if len(self.model_fields_set) != 1 or (self.path is None and self.content is None):
            raise ValueError("give either path or content")
        return self


@tool(
    "validate_script",
    kind="workspace",
    effect=Effect.READ,
    timeout_ms=30_000,
    request=REQUEST,
    response=RESPONSE,
)
async def validate_script(args: ValidateScript, ctx: ToolContext) -> Mapping[str, Any]:
    """Check a WebGAL script: syntax, the files and labels it refers to, and style.

    Give `path` (a file of the workspace) or `content` (a text not yet written). Files are looked up
    in the workspace's game folder either way. Diagnostics of kind style alone leave a script valid.
    """
    workspace = require_workspace(ctx)
    with add_hints(workspace):
        return await asyncio.to_thread(_validate, args, workspace, thread_deadline(ctx))


def _validate(args: ValidateScript, workspace: ProjectWorkspace, deadline: float) -> dict[str, Any]:
    policy = workspace.policy
    with Sandbox(workspace.root, policy.forbidden) as sandbox:
        text = _text(args, sandbox, min(SCENE_BYTES, policy.max_read_bytes))
        own_name = sandbox.normalize_path(args.path) if args.path else None
        draft = "" if args.path else text
        project = Project(sandbox, own_name, deadline, draft=draft)
        found = check_script(text, project, policy.language)
    return {"valid": all(one["kind"] == "style" for one in found), "diagnostics": found}


def _text(args: ValidateScript, sandbox: Sandbox, limit: int) -> str:
    """Return the script.

    Raises:
        TooLarge: It has more than `limit` bytes.
        ParseFailed: It is not text.
        PathNotFound, PathDenied, BadArguments, DiskFailed: As `Sandbox.read`.
    """
    where = "content" if args.path is None else args.path
    try:
        data = (args.content or "").encode() if args.path is None else b""
    except UnicodeEncodeError as exc:
        raise ParseFailed("The content is not valid Unicode.", details={"at": exc.start}) from None
    if args.path is not None:
        data = sandbox.read(args.path, limit=limit)
    if len(data) > limit:
        raise TooLarge(
            f"The script has more than {limit} bytes, the limit.",
            details={"bytes": len(data), "limit": limit},
        )
    try:
        return decode_text(data, where)
    except NotText as failed:
        raise ParseFailed(failed.message, details=failed.details) from None
