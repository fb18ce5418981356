"""`manage.py mcp_stdio` as a host starts it: a separate process with a separate database."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client, StdioServerParameters

ROOT = Path(__file__).parents[3]
MANAGE = str(ROOT / "manage.py")
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def own_database(folder: Path) -> dict[str, str]:
    """Return the environment of an installation with its own migrated SQLite file.

    DATABASE_URL is set, so no command starts a stack for it.
    """
    env = {
        **os.environ,
        "CONTINUITY_HOME": str(folder / "home"),
        "DATABASE_URL": f"sqlite:///{folder}/db.sqlite3?timeout=20&transaction_mode=IMMEDIATE",
        "CONTINUITY_REDIS_PREFIX": f"test-{folder.name}:",
        "DJANGO_SETTINGS_MODULE": "tests.lean_settings",
    }
    subprocess.run([sys.executable, MANAGE, "migrate", "-v0", "--skip-checks"], env=env, check=True)
    return env


@contextlib.contextmanager
def started(*command: str, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a management command for the length of a block; it is terminated, then killed."""
    process = subprocess.Popen([sys.executable, MANAGE, *command], env=env, cwd=env["HOME"])
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.asynccontextmanager
async def connected(
    env: dict[str, str], *options: str, mode: str = "auto", cwd: Path | None = None
) -> AsyncIterator[Client]:
    """Connect the SDK's client to a new server process: `mcp_stdio` with these options."""
    server = StdioServerParameters(
        command=sys.executable, args=[MANAGE, "mcp_stdio", *options], env=env, cwd=cwd
    )
    async with Client(server, mode=mode, read_timeout_seconds=60) as client:
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must succeed and return its structured answer."""
    result = await client.call_tool(tool, arguments)
    assert isinstance(result, types.CallToolResult)
    assert not result.is_error, result.content
    answer: dict[str, Any] = result.structured_content
    return answer


async def refused(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must be refused and return its error."""
    result = await client.call_tool(tool, arguments)
    assert isinstance(result, types.CallToolResult)
    assert result.is_error
    assert result.structured_content is None
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    error: dict[str, Any] = json.loads(block.text)
    return error


def talk(
    *lines: bytes | dict[str, Any],
    env: dict[str, str],
    arguments: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
) -> tuple[list[dict[str, Any]], str]:
    """Write lines to a server and close its stdin; return the messages of stdout, and stderr."""
    written = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    done = subprocess.run(
        [sys.executable, *flags, MANAGE, "mcp_stdio", *arguments],
        input=b"\n".join(written) + b"\n",
        capture_output=True,
        env=env,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()
