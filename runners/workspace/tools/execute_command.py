"""The tool `execute_command`: run a script of the project (S4 §4.1)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictStr

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runners.workspace.errors import BadArguments, ToolDisabled, WorkspaceFailed, WorkspaceTimeout
from runners.workspace.hints import localized_hint
from runners.workspace.scripts.package_scripts import Script, find_script
from runners.workspace.scripts.running_scripts import run_script
from runners.workspace.scripts.script_output import ScriptOutput
from runners.workspace.workspace import Workspace

MAX_ARGS, MAX_ARGS_BYTES = 100, 64 * 1024
RESERVE_SECONDS = 6.0  # of the call's own time, to end the script and tell what it printed

REQUEST: Mapping[str, Any] = {
    "$id": "execute_command.request",
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "scriptName": {"type": "string", "enum": ["dev", "build", "lint"]},
        "args": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["scriptName"],
}
RESPONSE: Mapping[str, Any] = {
    "$id": "execute_command.response",
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "ok": {"type": "boolean"},
        "logs": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["ok"],
}


class ExecuteCommand(Closed):
    """Which script to run, and with what."""

    script_name: StrictStr = Field(alias="scriptName")
    args: list[StrictStr] = Field(default_factory=list)


@tool(
    "execute_command",
    kind="workspace",
    effect=Effect.ONCE,
    timeout_ms=3_600_000,
    request=REQUEST,
    response=RESPONSE,
    developer=True,
)
async def execute_command(args: ExecuteCommand, ctx: ToolContext) -> Mapping[str, Any]:
    """Run a script of the project's package.json (dev, build or lint) in the project's root, and
    return whether it ended well and what it printed.

    Arguments reach the script as they are; no shell reads them. A script that does not end in time
    is stopped with what it started, as far as that can be found: E_TIMEOUT, with what it printed so
    far. Of a flood, the beginning and the end are returned. Developer mode only.
    """
    workspace = require_developer_mode(ctx)
    _check_args(args.args)
    scripts = await asyncio.to_thread(find_script, workspace, args.script_name)
    output = ScriptOutput()
    limit_ms = workspace.policy.command_timeout_ms
    seconds = max(0.0, min(limit_ms / 1000, ctx.seconds_left() - RESERVE_SECONDS))
    deadline = time.monotonic() + seconds
    status = 0
    for script in scripts:
        given = args.args if script.event == args.script_name else []
        output.add_line(f"> {script.event}: {script.command[:200]}")
        try:
            status = await run_script(script, given, workspace, output, deadline)
        except TimeoutError:
            raise _too_slow(workspace, script, seconds, output.lines(ctx.mask)) from None
        if status != 0:
            output.add_line(f"> {script.event} ended with {_words(status)}")
            break
    return {"ok": status == 0, "logs": output.lines(ctx.mask)}


def require_developer_mode(ctx: ToolContext) -> Workspace:
    """Return the call's workspace.

    Raises:
        ToolDisabled: There is none, or its owner did not choose developer mode.
    """
    if ctx.workspace is None:
        raise ToolDisabled("No workspace is set up for this caller.")
    if not ctx.workspace.policy.developer:
        raise ToolDisabled(
            "This tool is for developer mode, which is off.",
            hint=localized_hint(
                ctx.workspace,
                zh="请以 developer 工具集启动，或设置 CONTINUITY_DEVELOPER=1。",
                en="Start with the developer toolset, or set CONTINUITY_DEVELOPER=1.",
            ),
        )
    return ctx.workspace


def _check_args(args: list[str]) -> None:
    """Refuse what no program can be given."""
    try:
        size = sum(len(arg.encode()) + 1 for arg in args)
    except UnicodeEncodeError:
        raise BadArguments("args holds characters that are no text.") from None
    if any("\0" in arg for arg in args):
        raise BadArguments("args holds a NUL character.")
    if len(args) > MAX_ARGS or size > MAX_ARGS_BYTES:
        raise BadArguments(
            f"args holds more than {MAX_ARGS} arguments or {MAX_ARGS_BYTES} bytes.",
            details={"args": len(args), "bytes": size},
        )


def _too_slow(
    workspace: Workspace, script: Script, seconds: float, logs: list[str]
) -> WorkspaceFailed:
    limit_ms = round(seconds * 1000)
    return WorkspaceTimeout(
        f"The script {script.event} did not end within {limit_ms} ms; it was stopped, with all that"
        " could be found of what it had started.",
        hint=localized_hint(
            workspace,
            zh="details.logs 是停止前的输出。长期运行的服务请自行启动。",
            en="details.logs is what it printed. Start a server that runs on by yourself.",
        ),
        details={"scriptName": script.event, "timeoutMs": limit_ms, "logs": logs},
    )


def _words(status: int) -> str:
    return f"exit status {status}" if status >= 0 else f"signal {-status}"
