"""The tool `search_files`: find lines that match a regular expression (S4 §1.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictInt, StrictStr

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runners.workspace.call_context import require_workspace, thread_deadline
from runners.workspace.contract_schema import contract_schema
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.hints import READ_HINTS, add_hints
from runners.workspace.search.file_search import SearchQuery, search_below
from runners.workspace.search.patterns import line_pattern
from runners.workspace.workspace import ProjectWorkspace

MAX_MATCHES, DEFAULT_MATCHES = 10_000, 2000

REQUEST = contract_schema(
    "search_files.request",
    {
        "path": {"type": "string"},
        "regex": {"type": "string"},
        "filePattern": {"type": "string", "description": "glob, e.g. **/*.txt"},
        "maxMatches": {"type": "integer", "minimum": 1, "default": 2000},
    },
    ["path", "regex"],
)
RESPONSE = contract_schema(
    "search_files.response",
    {
        "matches": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "path": {"type": "string"},
                    "line": {"type": "integer", "minimum": 1},
                    "preview": {"type": "string"},
                },
                "required": ["path", "line", "preview"],
            },
        }
    },
    ["matches"],
)


class SearchFiles(Closed):
    """Where to search, for what, and the maximum number of lines."""

    path: StrictStr
    regex: StrictStr
    file_pattern: StrictStr | None = Field(default=None, alias="filePattern")
    max_matches: StrictInt = Field(
        default=DEFAULT_MATCHES, ge=1, le=MAX_MATCHES, alias="maxMatches"
    )


@tool(
    "search_files",
    kind="workspace",
    effect=Effect.READ,
    timeout_ms=30_000,
    request=REQUEST,
    response=RESPONSE,
)
async def search_files(args: SearchFiles, ctx: ToolContext) -> Mapping[str, Any]:
    r"""Find the lines that match a regular expression in the text files below a folder, or in one
    file. RE2 syntax: no lookaround, no backreferences; `(?i)` ignores case; `\w` is ASCII.

    Paths in the result are relative to the workspace's root, as for read_file. filePattern without
    a slash matches names at any depth. Binary files, files above the workspace's size limit, links
    and forbidden paths are not searched.
    """
    workspace, deadline = require_workspace(ctx), thread_deadline(ctx)
    return {"matches": await asyncio.to_thread(_search, workspace, args, deadline)}


def _search(
    workspace: ProjectWorkspace, args: SearchFiles, deadline: float
) -> list[dict[str, Any]]:
    policy = workspace.policy
    with (
        add_hints(workspace, READ_HINTS),
        Sandbox(workspace.root, policy.forbidden) as sandbox,
    ):
        search = SearchQuery(
            args.path,
            line_pattern(args.regex),
            args.file_pattern,
            args.max_matches,
            policy.max_read_bytes,
            deadline,
        )
        return [match._asdict() for match in search_below(sandbox, search)]
