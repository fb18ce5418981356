"""Files of the runner's folder, through the sandbox of the workspace tools: never over a link,
never outside of the root.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from runners.docker_runner.isolation.base import RunnerFolder
from runners.docker_runner.tool import OUTPUT_BYTES, Arguments, ToolEnvironment, runner_tool
from runners.tools.base import Effect
from runners.workspace.errors import PathNotFound
from runners.workspace.files.paths import is_unicode
from runners.workspace.files.sandbox import Sandbox, decode_text, too_large
from runners.workspace.workspace import WorkspacePolicy

WALK_S = 10.0
MAX_ENTRIES = 10_000
_FORBIDDEN = WorkspacePolicy().forbidden
# One write at a time: what is appended is read before, and must not be lost to another writer.
_writing = threading.Lock()


class ReadFileArguments(Arguments):
    """Which file."""

    path: str


class WriteFile(Arguments):
    """What to write, and where."""

    path: str
    content: str
    append: bool = False


class ListFilesArguments(Arguments):
    """Which folder."""

    path: str = "."
    recursive: bool = False
    limit: Annotated[int, Field(ge=1, le=MAX_ENTRIES)] = 200


@runner_tool("file.read", Effect.READ)
async def file_read(args: ReadFileArguments, env: ToolEnvironment) -> Mapping[str, Any]:
    """Return the text of a file of at most 1 MiB."""
    return await asyncio.to_thread(_read, args, env.folder)


@runner_tool("file.write", Effect.ONCE)
async def file_write(args: WriteFile, env: ToolEnvironment) -> Mapping[str, Any]:
    """Write a text file, whole or not at all, or add to its end; missing folders are made."""
    return await asyncio.to_thread(_write, args, env.folder)


@runner_tool("file.list", Effect.READ)
async def file_list(args: ListFilesArguments, env: ToolEnvironment) -> Mapping[str, Any]:
    """List a folder by path, or all that is below it; no links, and nothing that is forbidden."""
    return await asyncio.to_thread(_list, args, env.folder)


def open_sandbox(runner_folder: RunnerFolder) -> Sandbox:
    """Open the runner's folder; a context manager."""
    return Sandbox(runner_folder.root, _FORBIDDEN)


def _read(args: ReadFileArguments, runner_folder: RunnerFolder) -> Mapping[str, Any]:
    with open_sandbox(runner_folder) as sandbox:
        data = sandbox.read(args.path, limit=OUTPUT_BYTES)
        name = sandbox.normalize_path(args.path)
    return {"path": name, "content": decode_text(data, args.path), "sizeBytes": len(data)}


def _write(args: WriteFile, runner_folder: RunnerFolder) -> Mapping[str, Any]:
    data = args.content.encode()
    with open_sandbox(runner_folder) as sandbox, _writing:
        was = _content_of(sandbox, args.path) if args.append else None
        becomes = (was or b"") + data
        # Without append whatever is there is replaced; with it, only what was read.
        if args.append:
            sandbox.replace(args.path, becomes, expect=was)
        else:
            sandbox.replace(args.path, becomes)
        name = sandbox.normalize_path(args.path)
    return {"path": name, "bytesWritten": len(data), "sizeBytes": len(becomes)}


def _content_of(sandbox: Sandbox, path: str) -> bytes | None:
    limit = WorkspacePolicy().max_read_bytes
    try:
        data = sandbox.read(path, limit=limit)
    except PathNotFound:
        return None
    if len(data) >= limit:
        raise too_large(path, limit)
    return data


def _list(args: ListFilesArguments, runner_folder: RunnerFolder) -> Mapping[str, Any]:
    with open_sandbox(runner_folder) as sandbox:
        base = sandbox.normalize_path(args.path)
        if args.recursive:
            found = sandbox.find(args.path, deadline=time.monotonic() + WALK_S)
            names = [(name, "file") for name in found.files]
            names += [(name, "folder") for name in found.folders]
        else:
            entries = sandbox.list_dir(args.path)
            names = [(one.name, "folder" if one.folder else "file") for one in entries]
    # A name that is no UTF-8 cannot stand in JSON, and cannot be asked for either.
    names = sorted(name for name in names if is_unicode(name[0]))
    before = "" if base == "." else f"{base}/"
    shown = [{"path": before + name, "type": kind} for name, kind in names[: args.limit]]
    total = len(names)
    return {"path": base, "entries": shown, "total": total, "truncated": total > len(shown)}
