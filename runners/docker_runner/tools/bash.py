"""A command line, run by the shell under the runner's isolation, with its output as it comes."""

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
from runners.docker_runner.isolation.base import Command, RunnerFolder, StreamName
from runners.docker_runner.tool import MAX_TIMEOUT_MS, OUTPUT_BYTES, Arguments, ToolEnvironment, runner_tool
from runners.docker_runner.tools.files import open_sandbox
from runners.tools.base import Effect

# The system takes no longer argument, and no more of all together than a quarter of the stack.
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
        raise ValueError("holds a name that is no variable's (letters, digits and _)")
    return env


class BashExec(Arguments):
    """A command line, and where and how long it may run."""

    cmd: Annotated[str, Field(min_length=1), AfterValidator(_check_line)]
    cwd: str = "."
    timeout_ms: Annotated[int, Field(alias="timeoutMs", ge=1)] = MAX_TIMEOUT_MS
    env: Annotated[dict[str, str], AfterValidator(_check_env)] = {}


@runner_tool("bash.exec", Effect.ONCE)
async def bash_exec(args: BashExec, env: ToolEnvironment) -> Mapping[str, Any]:
    """Run a command line in the runner's folder and return its exit status and what it printed.

    What it prints is told as it comes. It is killed with all that it started when timeoutMs
    (180000 at most) are over, when the caller hangs up, and what it left running when it ends.
    """
    folder = await asyncio.to_thread(_folder, args.cwd, env.place)
    timeout_ms = min(args.timeout_ms, MAX_TIMEOUT_MS)
    said, began = CommandOutput(env.emit), time.monotonic()
    running = await env.isolation.start(Command(args.cmd, folder, args.env, timeout_ms / 1000))
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            async for stream, data in running.pieces():
                said.hear(stream, data)
            status = await running.wait()
    except TimeoutError:
        raise CommandTimedOut(
            f"The command did not end within {timeout_ms} ms; it was killed with all it had"
            " started.",
            details={"timeoutMs": timeout_ms, **said.as_dict()},
        ) from None
    finally:
        await running.end()
    took_ms = round((time.monotonic() - began) * 1000)
    return {"exitCode": status, **said.as_dict(), "durationMs": took_ms}


def _folder(cwd: str, place: RunnerFolder) -> str:
    """Return the folder in the one form that names it; it is there, and no link leads to it."""
    with open_sandbox(place) as sandbox:
        os.close(sandbox.open_dir(cwd))
        return sandbox.normalize_path(cwd)


class CommandOutput:
    """What a command printed, up to OUTPUT_BYTES of both streams as they stand in JSON: whatever
    it prints, the answer stays small enough for a gateway.
    """

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._say, self._room = emit, OUTPUT_BYTES
        self._texts: dict[StreamName, list[str]] = {"stdout": [], "stderr": []}
        make = codecs.getincrementaldecoder("utf-8")
        self._decoders = {name: make("replace") for name in self._texts}
        self._is_cut = False

    def hear(self, stream: StreamName, data: bytes) -> None:
        """Take what it printed next; what there is no room for is dropped, which is said once."""
        if not self._is_cut:
            self._keep(stream, self._decoders[stream].decode(data))

    def as_dict(self) -> dict[str, Any]:
        """Return both texts, and whether they are cut."""
        for stream, decoder in self._decoders.items():
            if not self._is_cut:
                self._keep(stream, decoder.decode(b"", final=True))
        texts: dict[str, Any] = {name: "".join(told) for name, told in self._texts.items()}
        return texts | {"truncated": self._is_cut}

    def _keep(self, stream: StreamName, text: str) -> None:
        fits = text if _size(text) <= self._room else _longest(text, self._room)
        if fits:
            self._room -= _size(fits)
            self._texts[stream].append(fits)
            self._say(fits)
        if len(fits) < len(text):
            self._is_cut = True
            self._say(CUT)


def _size(text: str) -> int:
    return len(orjson.dumps(text)) - 2


def _longest(text: str, room: int) -> str:
    """Return the longest beginning of the text that has at most `room` bytes in JSON."""
    return text[: bisect_right(range(1, len(text) + 1), room, key=lambda n: _size(text[:n]))]
