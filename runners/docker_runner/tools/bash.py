"""The tool `bash.exec`: run a command line under the runner's isolation and stream its output."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import orjson
from pydantic import AfterValidator, Field

from runners.docker_runner.errors import CommandTimedOut
from runners.docker_runner.isolation.base import Command, RunnerFolder
from runners.docker_runner.tool import (
    MAX_TIMEOUT_MS,
    OUTPUT_BYTES,
    Arguments,
    ToolEnvironment,
    runner_tool,
)
from runners.docker_runner.tools.files import open_sandbox
from runners.processes.supervised import StreamName
from runners.tools.base import Effect

# Limits of Linux: one argument at most 128 KiB, all arguments at most a quarter of the stack.
MAX_LINE_BYTES = 96 * 1024
MAX_ENV_BYTES = 32 * 1024
MAX_ENV = 64
CUT = f"\n[output cut here: a command's output is kept up to {OUTPUT_BYTES} bytes]\n"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def _check_line(line: str) -> str:
    if len(line.encode()) > MAX_LINE_BYTES:
        raise ValueError(f"has more than {MAX_LINE_BYTES} bytes; write a script with file.write")
    return line


def _check_env(env: dict[str, str]) -> dict[str, str]:
    if len(env) > MAX_ENV or sum(len(k) + len(v.encode()) for k, v in env.items()) > MAX_ENV_BYTES:
        raise ValueError(f"has more than {MAX_ENV} variables or {MAX_ENV_BYTES} bytes")
    if not all(_NAME.fullmatch(name) for name in env):
        raise ValueError("has an invalid variable name (letters, digits and _)")
    return env


class BashExec(Arguments):
    """A command line, its folder, environment and time limit."""

    cmd: Annotated[str, Field(min_length=1), AfterValidator(_check_line)]
    cwd: str = "."
    timeout_ms: Annotated[int, Field(alias="timeoutMs", ge=1)] = MAX_TIMEOUT_MS
    env: Annotated[dict[str, str], AfterValidator(_check_env)] = {}


@runner_tool("bash.exec", Effect.ONCE)
async def bash_exec(args: BashExec, env: ToolEnvironment) -> Mapping[str, Any]:
    """Run a command line in the runner's folder and return its exit status and output.

    Output is streamed. The command and all its processes are killed when timeoutMs (at most
    180000) is exceeded, when the caller disconnects, and when the command ends.
    """
    folder = await asyncio.to_thread(_folder, args.cwd, env.folder)
    timeout_ms = min(args.timeout_ms, MAX_TIMEOUT_MS)
    output, started = CommandOutput(env.emit), time.monotonic()
    running = await env.isolation.start(Command(args.cmd, folder, args.env, timeout_ms / 1000))
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            async for stream, data in running.pieces():
                output.append(stream, data)
            status = await running.wait()
    except TimeoutError:
        raise CommandTimedOut(
            f"The command did not finish within {timeout_ms} ms; it was killed with all its"
            " processes.",
            details={"timeoutMs": timeout_ms, **output.as_dict()},
        ) from None
    finally:
        await running.end()
    took_ms = round((time.monotonic() - started) * 1000)
    return {"exitCode": status, **output.as_dict(), "durationMs": took_ms}


def _folder(cwd: str, runner_folder: RunnerFolder) -> str:
    """Return the normalized path of an existing folder that is reached without links."""
    with open_sandbox(runner_folder) as sandbox:
        os.close(sandbox.open_dir(cwd))
        return sandbox.normalize_path(cwd)


class CommandOutput:
    """The output of a command, limited to OUTPUT_BYTES of both streams as JSON, so that the
    response stays within the gateway's limit.
    """

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit, self._room = emit, OUTPUT_BYTES
        self._texts: dict[StreamName, list[str]] = {"stdout": [], "stderr": []}
        make = codecs.getincrementaldecoder("utf-8")
        self._decoders = {name: make("replace") for name in self._texts}
        self._is_cut = False

    def append(self, stream: StreamName, data: bytes) -> None:
        """Add output; what exceeds the limit is dropped, with one notice."""
        if not self._is_cut:
            self._add(stream, self._decoders[stream].decode(data))

    def as_dict(self) -> dict[str, Any]:
        """Return both texts and whether they are truncated."""
        for stream, decoder in self._decoders.items():
            if not self._is_cut:
                self._add(stream, decoder.decode(b"", final=True))
        texts: dict[str, Any] = {name: "".join(parts) for name, parts in self._texts.items()}
        return texts | {"truncated": self._is_cut}

    def _add(self, stream: StreamName, text: str) -> None:
        fits = text if _size(text) <= self._room else _longest(text, self._room)
        if fits:
            self._room -= _size(fits)
            self._texts[stream].append(fits)
            self._emit(fits)
        if len(fits) < len(text):
            self._is_cut = True
            self._emit(CUT)


def _size(text: str) -> int:
    return len(orjson.dumps(text)) - 2


def _longest(text: str, room: int) -> str:
    """Return the longest prefix of the text that has at most `room` bytes as JSON."""
    return text[: bisect_right(range(1, len(text) + 1), room, key=lambda n: _size(text[:n]))]
